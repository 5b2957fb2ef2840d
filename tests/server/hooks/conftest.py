"""Hooks run in this process, on a data directory and in projects of their own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from server.hooks.events import Handler
from server.hooks.options import HookOptions
from server.hooks.payloads import CLIENTS, Moment, read_call
from storage.models import Identity

DAY = 86_400.0


class Clients:
    """Clients that work on projects in a folder, at any time."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.ignore: tuple[str, ...] = ()
        self._patch = patch

    @property
    def options(self) -> HookOptions:
        data = self.folder / "data"
        log = data / "logs" / "toolcrib.log"
        return HookOptions(data, log, Identity(), capture=True, ignore=self.ignore)

    def project(self, name: str) -> Path:
        path = self.folder / "work" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def at(self, moment: float) -> None:
        """Sets the clock."""
        self._patch.setattr("time.time", lambda: moment)

    def fire(
        self, client: str, event: str, session: str, project: str = "shop", **payload: Any
    ) -> dict[str, Any]:
        """Runs a hook as a client would, and returns its reply."""
        replies: list[Any] = []
        known = CLIENTS[client]
        fields = {known.session[0]: session, known.directory[0]: str(self.project(project))}
        call = read_call(client, event, fields | payload, Path("/"))
        Handler(call, self.options).run(replies.append)
        assert len(replies) < 2
        return json.loads(json.dumps(replies[0])) if replies else {}

    def turn(self, session: str, prompt: str, answer: str | None, project: str = "shop") -> None:
        """Has Claude Code report a turn, which may have no answer."""
        self.fire("claude-code", "UserPromptSubmit", session, project, prompt=prompt)
        if answer is not None:
            fields = {"last_assistant_message": answer}
            self.fire("claude-code", "Stop", session, project, **fields)

    def start(self, session: str, project: str = "shop", source: str = "startup") -> str:
        """Starts a session of Claude Code, and returns what it is shown."""
        return self._shown("SessionStart", session, project, source=source)

    def ask(self, session: str, prompt: str, project: str = "shop") -> str:
        """Has Claude Code report a prompt, and returns what the session is shown with it."""
        return self._shown("UserPromptSubmit", session, project, prompt=prompt)

    def _shown(self, event: str, session: str, project: str, **payload: str) -> str:
        reply = self.fire("claude-code", event, session, project, **payload)
        shown = reply.get("hookSpecificOutput", {}).get("additionalContext", "")
        assert isinstance(shown, str)
        return shown


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clients:
    return Clients(tmp_path, monkeypatch)


@pytest.fixture
def event_of() -> Callable[[str, Moment], str]:
    """Finds what a client calls an event."""

    def find(client: str, moment: Moment) -> str:
        events = CLIENTS[client].events
        return next(name for name, event in events.items() if event.moment is moment)

    return find

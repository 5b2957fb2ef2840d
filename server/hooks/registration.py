"""Gives the pieces of clients' configuration that register our hooks."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from server.clients.client import placed
from server.clients.locations import AGENT_HEADER
from server.clients.pieces import GENERATED, Format, Piece
from server.hooks.payloads import CLIENTS
from tools.agent.agents.agent import URL_VARIABLE

TOKEN = "TOOLCRIB_HTTP__TOKEN"  # noqa: S105  # the name of a variable
SECONDS = 10  # after which a client gives up on a hook, which gives up itself after two


def hook_pieces(  # noqa: PLR0913  # one parameter an option
    name: str,
    command: Sequence[str],
    project: Path | None = None,
    options: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    *,
    url: str = "",
) -> list[Piece]:
    """Returns the pieces that register the hooks of a client, by its name in `server.clients`.

    They go into the configuration of a project, or else of the user. `command` starts Toolcrib;
    `options`, such as `--data-dir`, follow the event; `environ` may name the client's folder.
    `url` is of a running server, which gets the events of clients that can send them there.
    Empty for a client without hooks there.
    """
    if name not in CLIENTS:
        return []
    folder, in_project = _FOLDERS[name]
    base = placed(folder, environ or {}) if project is None else project / in_project
    place = _Place(name, tuple(command), tuple(options), base, url, is_users=project is None)
    return list(_FORMS[name](place))


_FOLDERS = {
    "claude-code": ("{claude_settings}", ".claude"),
    "codex": ("{codex}", ".codex"),
    "gemini": ("~/.gemini", ".gemini"),
    "cursor": ("~/.cursor", ".cursor"),
    "copilot": ("~/.copilot", ".github"),
    "opencode": ("{opencode}", ".opencode"),
}
"""The folder of each client's hooks, of the user and in a project."""


@dataclass(frozen=True, slots=True)
class _Place:
    """A client, how Toolcrib is started for it, and where its configuration is."""

    client: str
    command: tuple[str, ...]
    options: tuple[str, ...]
    folder: Path
    url: str  # of the server that gets the events; empty: a process does
    is_users: bool  # whether the configuration is that of the user

    def words(self, event: str) -> list[str]:
        """Returns the command of a hook."""
        return [*self.command, "hook", self.client, event, *self.options]

    def line(self, event: str) -> str:
        """Returns the command of a hook as a line of a shell."""
        return shlex.join(self.words(event))

    def appended(self, file: Path, event: str, value: Mapping[str, Any]) -> Piece:
        """Returns a piece that adds a hook to those of an event."""
        return Piece(self.client, file, Format.JSON, ("hooks", event), value, append=True)

    def whole_file(self, file: Path, text: str) -> Piece:
        """Returns a piece that is a file of ours."""
        return Piece(self.client, file, Format.WHOLE, (), text)


def _groups(name: str, seconds: int) -> Callable[[_Place], Iterator[Piece]]:
    """Registers groups of handlers, as Claude Code, Codex and Gemini CLI have them."""

    def pieces(place: _Place) -> Iterator[Piece]:
        file = place.folder / name
        for event in CLIENTS[place.client].events:
            handler: dict[str, Any] = {"type": "command", "command": place.line(event)}
            if place.url and place.client in _SENDERS and event not in _SENDERS[place.client]:
                handler = _sent(f"{place.url}/hooks/{place.client}/{event}")
            yield place.appended(file, event, {"hooks": [{**handler, "timeout": seconds}]})

    return pieces


_SENDERS = {"claude-code": {"SessionStart"}}
"""The clients that send events over HTTP, and those that they give to commands only."""


def _sent(url: str) -> dict[str, Any]:
    """Returns a handler that sends an event with the token of the client's environment."""
    headers = {"Authorization": f"Bearer ${TOKEN}", AGENT_HEADER: f"${URL_VARIABLE}"}
    return {"type": "http", "url": url, "headers": headers, "allowedEnvVars": [TOKEN, URL_VARIABLE]}


def _cursor(place: _Place) -> Iterator[Piece]:
    file = place.folder / "hooks.json"
    yield Piece(place.client, file, Format.JSON, ("version",), 1)
    for event in CLIENTS[place.client].events:
        yield place.appended(file, event, {"command": place.line(event)})


def _copilot(place: _Place) -> Iterator[Piece]:
    if place.is_users:  # it reads those of projects only
        return
    hooks = {
        event: [{"type": "command", "bash": place.line(event), "timeoutSec": SECONDS}]
        for event in CLIENTS[place.client].events
    }
    text = json.dumps({"version": 1, "description": GENERATED, "hooks": hooks}, indent=2)
    yield place.whole_file(place.folder / "hooks" / "toolcrib.json", f"{text}\n")


def _opencode(place: _Place) -> Iterator[Piece]:
    source = resources.files("server.hooks").joinpath("opencode.js").read_text(encoding="utf-8")
    text = source.replace("[[COMMAND]]", json.dumps(place.words("EVENT")))
    yield place.whole_file(place.folder / "plugins" / "toolcrib.js", text)


_FORMS: Mapping[str, Callable[[_Place], Iterator[Piece]]] = {
    "claude-code": _groups("settings.json", SECONDS),
    "codex": _groups("hooks.json", SECONDS),
    "gemini": _groups("settings.json", SECONDS * 1000),
    "cursor": _cursor,
    "copilot": _copilot,
    "opencode": _opencode,
}
"""How each client registers hooks."""

"""`toolcrib import sessions`: remembers the sessions that clients have stored on this machine."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from server.cli.terminal.errors import stoppable
from server.cli.terminal.progress import bars, drain
from server.cli.terminal.screen import console, echo
from server.hooks.events import ANSWER_CHARACTERS, COMMAND, PROMPT_CHARACTERS
from server.hooks.exclusions import Exclusions, read_paused
from server.hooks.payloads import CLIENTS
from server.hooks.project import project_of
from server.hooks.saved_sessions import SOURCES, SavedSession
from server.mcp.visible import visible
from storage.index.bounded import clip
from storage.memory.captured import SAID_CHARACTERS, Captured
from tools.answers.directory import counted

if TYPE_CHECKING:
    from server.app import App
    from storage.database import Database

_IMPORTED = "imported sessions"
"""Key of what was imported already: a stamp for each session."""


@dataclass
class Tally:
    """What an import did, for each client."""

    sessions: Counter[str] = field(default_factory=Counter)
    turns: Counter[str] = field(default_factory=Counter)
    ignored: Counter[str] = field(default_factory=Counter)
    unreadable: Counter[str] = field(default_factory=Counter)
    found: set[str] = field(default_factory=set)

    def lines(self, clients: Sequence[str]) -> Iterator[str]:
        """Yields a line for each client."""
        for client in clients:
            if client not in self.found:
                yield f"{CLIENTS[client].title}: no sessions on this machine"
                continue
            added = counted(self.turns[client], "turn")
            said = f"{added} of {counted(self.sessions[client], 'session')} added"
            if not self.turns[client]:
                said = "nothing new"
            ignored = self.ignored[client]
            more = (
                f", {counted(ignored, 'session')} left out as ignored or paused" if ignored else ""
            )
            if bad := self.unreadable[client]:
                more += f", {counted(bad, 'session')} cannot be read"
            yield f"{CLIENTS[client].title}: {said}{more}"

    def as_json(self, clients: Sequence[str]) -> dict[str, Any]:
        """Returns the counts of each client."""
        return {
            client: {
                "sessions": self.sessions[client],
                "turns": self.turns[client],
                "ignored": self.ignored[client],
                "unreadable": self.unreadable[client],
            }
            for client in clients
        }


def import_sessions(app: App, source: str | None, *, as_json: bool) -> None:
    """Stores the turns of sessions that are not stored yet, as hooks would have stored them."""
    clients = [source] if source else list(SOURCES)
    if source is not None and source not in SOURCES:
        raise typer.BadParameter(
            f"{source!r} has no sessions that can be read; known are {', '.join(SOURCES)}.",
            param_hint="'--from'",
        )
    tally = Tally()
    advice = "Stored turns are kept; run the same command again to continue."
    with stoppable(advice), bars(console()) as progress:
        task = progress.add_task("Reading", total=None, detail="")
        importer = _Importer(app, tally)
        try:
            for client in clients:
                for session in SOURCES[client](Path.home(), os.environ):
                    progress.update(task, detail=visible(session.directory.name))
                    tally.found.add(client)
                    try:
                        importer.store(session)
                    except (OSError, ValueError):  # of one session, such as an impossible path
                        tally.unreadable[client] += 1
                    progress.advance(task)
        finally:
            importer.close()
        progress.update(task, detail="")
        drain(app.library, progress)
    if as_json:
        echo(json.dumps(tally.as_json(clients)))
    else:
        for line in tally.lines(clients):
            echo(line)


class _Importer:
    def __init__(self, app: App, tally: Tally) -> None:
        self._database: Database = app.library.database
        self._captured = Captured(self._database, app.identity)
        self._ignore = app.settings.memory.ignore
        self._paused = read_paused(self._database)
        self._tally = tally
        self._stamps: dict[str, str] = json.loads(self._database.get_meta(_IMPORTED) or "{}")

    def store(self, session: SavedSession) -> None:
        name = f"{session.client} {session.id}"
        if self._stamps.get(name) == session.stamp:
            return
        project = project_of(session.directory)
        exclusions = Exclusions(project, self._ignore)
        paused = self._paused.covers(project.directory)
        if paused or exclusions.cover_directory(session.directory):
            self._tally.ignored[session.client] += 1
            return
        kept = self._captured.session(
            session.id, session.client, str(project.directory), begins=True
        )
        known, added = self._captured.answers(kept.id), 0
        for prompt, answer in session.turns():
            asked = exclusions.storable(prompt.text, PROMPT_CHARACTERS)
            answered = exclusions.storable(answer.text, ANSWER_CHARACTERS)
            short = clip(answered, SAID_CHARACTERS)
            if known[short]:  # by a hook, or an earlier import
                known[short] -= 1
            elif not COMMAND.match(asked):
                self._captured.hear_prompt(kept, asked, prompt.time)
                added += self._captured.hear_answer(kept, answered, answer.time)
        self._tally.sessions[session.client] += bool(added)
        self._tally.turns[session.client] += added
        self._stamps[name] = session.stamp

    def close(self) -> None:
        """Keeps which sessions need not be read again until they change."""
        self._database.set_meta(_IMPORTED, json.dumps(self._stamps))

"""Gives the pieces of clients' configuration that register our hooks."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from server.clients.pieces import GENERATED, Format, Piece
from server.hooks.payloads import CLIENTS

SECONDS = 10  # after which a client gives up on a hook, which gives up itself after two


def hook_pieces(
    name: str,
    command: Sequence[str],
    project: Path | None = None,
    options: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> list[Piece]:
    """Returns the pieces that register the hooks of a client, by its name in `server.clients`.

    They go into the configuration of a project, or else of the user. `command` starts Toolcrib;
    `options`, such as `--data-dir`, follow the event; `environ` may name the client's folder.
    Empty for a client without hooks there.
    """
    if name not in CLIENTS:
        return []
    base = project or Path.home()
    given = (environ or {}).get(_MOVED.get(name, ""), "")
    moved = Path(given).expanduser() if given and project is None else None
    place = _Place(name, tuple(command), tuple(options), base, moved, is_users=project is None)
    return list(_FORMS[name](place))


_MOVED = {"claude-code": "CLAUDE_CONFIG_DIR", "codex": "CODEX_HOME", "opencode": "XDG_CONFIG_HOME"}
# Variables that name another folder than the usual one, as in `server.clients.client`.


@dataclass(frozen=True, slots=True)
class _Place:
    """A client, how Toolcrib is started for it, and where its configuration is."""

    client: str
    command: tuple[str, ...]
    options: tuple[str, ...]
    base: Path
    moved: Path | None  # the user's folder for the client, or for all, where a variable names it
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


def _groups(folder: str, name: str, seconds: int) -> Callable[[_Place], Iterator[Piece]]:
    """Registers groups of handlers, as Claude Code, Codex and Gemini CLI have them."""

    def pieces(place: _Place) -> Iterator[Piece]:
        file = (place.moved or place.base / folder) / name
        for event in CLIENTS[place.client].events:
            handler = {"type": "command", "command": place.line(event), "timeout": seconds}
            yield place.appended(file, event, {"hooks": [handler]})

    return pieces


def _cursor(place: _Place) -> Iterator[Piece]:
    file = place.base / ".cursor" / "hooks.json"
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
    yield place.whole_file(place.base / ".github" / "hooks" / "toolcrib.json", f"{text}\n")


def _opencode(place: _Place) -> Iterator[Piece]:
    usual = place.base / (".config/opencode" if place.is_users else ".opencode")
    folder = place.moved / "opencode" if place.moved else usual
    source = resources.files("server.hooks").joinpath("opencode.js").read_text(encoding="utf-8")
    text = source.replace("[[COMMAND]]", json.dumps(place.words("EVENT")))
    yield place.whole_file(folder / "plugins" / "toolcrib.js", text)


_FORMS: Mapping[str, Callable[[_Place], Iterator[Piece]]] = {
    "claude-code": _groups(".claude", "settings.json", SECONDS),
    "codex": _groups(".codex", "hooks.json", SECONDS),
    "gemini": _groups(".gemini", "settings.json", SECONDS * 1000),
    "cursor": _cursor,
    "copilot": _copilot,
    "opencode": _opencode,
}
"""How each client registers hooks."""

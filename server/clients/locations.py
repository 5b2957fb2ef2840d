"""Finds our own command, and detects entries in clients' files that start it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import urlsplit


def command_path() -> Path:
    """Returns the absolute path of the command, as desktop clients do not inherit the PATH."""
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    places = os.pathsep.join(sysconfig.get_path("scripts", scheme) for scheme in schemes)
    return Path(shutil.which("toolcrib", path=places) or sys.argv[0]).absolute()


_LOOPBACK = {"127.0.0.1", "localhost", "::1", "0.0.0.0"}  # noqa: S104  # compared, not bound
_PACKAGE = re.compile(r"toolcrib(\.exe|@\S*|\[\S*|[=<>~!]=\S*)?", re.IGNORECASE)
_RUNNERS = re.compile(
    r"(uvx?|pipx?|python[\d.]*|pypy[\d.]*|conda|poetry|hatch|rye|env|(ba|z|da)?sh|cmd|wsl|sudo"
    r"|docker|podman|npx|node)(\.exe)?",
    re.IGNORECASE,
)
"""Programs that start other programs named in their arguments."""

_FOLDERS_OF_COMMANDS = {"bin", "scripts", "shims"}


@dataclass(frozen=True, slots=True)
class OwnAddress:
    """The address of this Toolcrib over HTTP."""

    host: str
    port: int


def is_toolcrib(entry: Mapping[str, Any], own: OwnAddress) -> bool:
    """Returns whether a server's command is Toolcrib's, or one of its addresses is ours."""
    command = entry.get("command")
    given = entry.get("args")
    texts = [each for each in given if isinstance(each, str)] if isinstance(given, list) else []
    words = [
        word for text in texts for word in text.split()
    ]  # `sh -c "toolcrib serve"` is one text
    values = [value for value in entry.values() if isinstance(value, str)]
    if any(_is_own(text, own) for text in (*values, *words)):
        return True
    if not isinstance(command, str) or not command.strip():
        return False
    program, *more = _split(command) if " " in command and not words else [command]
    named = PurePath(program.replace("\\", "/"))
    if _PACKAGE.fullmatch(named.name):
        return True
    runs = bool(_RUNNERS.fullmatch(named.name))
    return any(_names_it(word, as_package=runs) for word in (*more, *words))


AGENT_HEADER = "X-Toolcrib-Agent"
"""The header of hooks over HTTP; not empty in sessions of agents that Toolcrib started."""

_COMMANDS = ("command", "cmd", "bash")
"""Keys of a program to start, in servers and in hooks."""


def starts_toolcrib(value: object, own: OwnAddress) -> bool:
    """Returns whether a server's entry, or a hook inside a value, starts Toolcrib."""
    if isinstance(value, list):
        return any(starts_toolcrib(each, own) for each in value)
    if not isinstance(value, dict):
        return False
    command = next((value[key] for key in _COMMANDS if key in value), None)
    entry = value | {"command": command}
    if isinstance(command, list) and command:  # opencode's form
        entry |= {"command": command[0], "args": command[1:]}
    return is_toolcrib(entry, own) or any(starts_toolcrib(each, own) for each in value.values())


def runs_only_hooks(value: object, own: OwnAddress) -> bool:
    """Returns whether a hook, or each of a group, is `toolcrib hook`, or sends to our server."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("hooks"), list):
        return 0 < len(own_handlers(value, own)) == len(value["hooks"])
    if isinstance(headers := value.get("headers"), dict):
        return AGENT_HEADER in headers
    lines = (value.get(key) for key in _COMMANDS)
    return any("hook" in _split(str(line)) for line in lines) and starts_toolcrib(value, own)


def own_handlers(group: object, own: OwnAddress) -> list[int]:
    """Returns the positions of our hooks in a group."""
    handlers = group.get("hooks") if isinstance(group, dict) else None
    if not isinstance(handlers, list):
        return []
    return [at for at, each in enumerate(handlers) if runs_only_hooks(each, own)]


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # an unpaired quote
        return line.split()


def _names_it(word: str, *, as_package: bool) -> bool:
    path = PurePath(word.strip("'\"").replace("\\", "/"))
    if not _PACKAGE.fullmatch(path.name):
        return False
    if len(path.parts) == 1:
        return as_package
    return path.parent.name.lower() in _FOLDERS_OF_COMMANDS  # a mere folder is not


def _is_own(text: str, own: OwnAddress) -> bool:
    if not text.lower().startswith(("http://", "https://")):
        return False
    try:
        address = urlsplit(text)
        port = address.port or (443 if address.scheme == "https" else 80)
    except ValueError:
        return False
    return port == own.port and address.hostname in {*_LOOPBACK, own.host.lower()}

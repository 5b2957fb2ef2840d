"""Detects entries that start or connect to Toolcrib: it must never be a server of itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

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
    words = list(_words(entry.get("args")))
    texts = [value for value in entry.values() if isinstance(value, str)]
    if any(_is_own(text, own) for text in (*texts, *words)):
        return True
    if not isinstance(command, str) or not command.strip():
        return False
    program, *more = command.split() if " " in command and not words else [command]
    named = PurePath(program.replace("\\", "/"))
    if _PACKAGE.fullmatch(named.name):
        return True
    runs = bool(_RUNNERS.fullmatch(named.name))
    return any(_names_it(word, as_package=runs) for word in (*more, *words))


def _words(arguments: object) -> Iterable[str]:
    for each in arguments if isinstance(arguments, list) else ():
        if isinstance(each, str):
            yield from each.split()  # `sh -c "toolcrib serve"` is one argument


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

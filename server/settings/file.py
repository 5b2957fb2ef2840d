"""The settings file as text: tables of servers are put into it, the rest stays byte for byte."""

from __future__ import annotations

import os
import re
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from server.settings.settings import SettingsError
from server.settings.toml_text import toml_table

__all__ = ["ServerTable", "SettingsFile"]

IMPORTED = "# Imported from "
"""How the comment above a table begins that was not written by a person."""

_HEADER = re.compile(r"[ \t]*\[[ \t]*(?P<key>[^\[\]]*?)[ \t]*\][ \t]*(#.*)?")
_ANY_HEADER = re.compile(r"[ \t]*\[")
_UNTOLD = re.compile(r"[ \t]*(#.*)?")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # str.splitlines knows more ends of lines than TOML


@dataclass(frozen=True, slots=True)
class ServerTable:
    """A server to be written.

    Attributes:
        name: What the settings call it.
        fields: Its settings.
        comments: Lines above it, the first of which says where it comes from.
    """

    name: str
    fields: Mapping[str, Any]
    comments: tuple[str, ...] = ()


class SettingsFile:
    """One settings file, read once and written as a whole.

    Args:
        path: Where; it need not be there yet.

    Raises:
        SettingsError: If it cannot be read, or is no TOML.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            data = path.read_bytes() if path.exists() else b""
            self._text = data.decode("utf-8-sig")
            self._mark = "\ufeff" if data.startswith(b"\xef\xbb\xbf") else ""
            self._document = tomllib.loads(self._text)
        except OSError as error:
            raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SettingsError(f"{path} is not TOML: {error}.") from error

    @property
    def servers(self) -> Mapping[str, Any]:
        """The servers that it names."""
        found = self._document.get("servers", {})
        return found if isinstance(found, dict) else {}

    def put(self, tables: list[ServerTable]) -> None:
        """Writes servers, each in place of the one that has its name, or at the end.

        The file becomes readable by its owner alone, as servers have secrets.

        Raises:
            SettingsError: If it cannot be written, or not without changing anything else.
        """
        text = self._text
        for table in tables:
            text = _with(text, table)
        expected = dict(self._document)
        expected["servers"] = dict(self.servers) | {each.name: each.fields for each in tables}
        try:
            same = tomllib.loads(text) == expected
        except tomllib.TOMLDecodeError:
            same = False
        if not same:
            raise SettingsError(
                f"{self.path} cannot be changed safely: it has servers in another form than tables"
                " [servers.NAME] one after the other. Write them so; nothing was changed."
            )
        self._replace(self._mark + text)

    def _replace(self, text: str) -> None:
        """Puts a text in place of the file at once; a link to it stays one."""
        target = self.path.resolve()
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:  # made with mode 0600
                    file.write(text.encode())
                    file.flush()
                    os.fsync(file.fileno())
                Path(name).replace(target)
            except BaseException:
                with suppress(OSError):
                    Path(name).unlink()
                raise
        except OSError as error:
            raise SettingsError(
                f"{self.path} cannot be written: {error.strerror}. Nothing was changed."
            ) from error


def _with(text: str, table: ServerTable) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [*table.comments, *toml_table(f"servers.{table.name}", table.fields)]
    written = "".join(line + newline for line in lines)
    before, old, after = _parted(text, table.name)
    if old:
        return before + written + after
    if text and not text.endswith("\n"):
        text += newline
    return text + (newline if text.strip() else "") + written


def _parted(text: str, name: str) -> tuple[str, str, str]:
    """What is before a server's tables, these with a comment of ours above, and what is after."""
    lines = _LINE.findall(text)
    ours = [index for index in _headers(lines) if _is_of(lines[index], name)]
    if not ours:
        return text, "", ""
    first, last = ours[0], ours[-1]
    end = next((index for index in _headers(lines) if index > last), len(lines))
    while end > last + 1 and _UNTOLD.fullmatch(lines[end - 1].rstrip("\r\n")):
        end -= 1  # comments and blank lines belong to what follows
    above = first
    while above and lines[above - 1].startswith("#"):
        above -= 1
        if lines[above].startswith(IMPORTED):
            first = above
    return "".join(lines[:first]), "".join(lines[first:end]), "".join(lines[end:])


def _headers(lines: list[str]) -> Iterator[int]:
    """Lines that begin a table: they look so, and what is before them is whole.

    What was before the last one is not read again: settings may name a hundred servers.
    """
    last = 0
    for index, line in enumerate(lines):
        if _ANY_HEADER.match(line):
            with suppress(tomllib.TOMLDecodeError):
                tomllib.loads("".join(lines[last:index]))
                last = index
                yield index


def _is_of(line: str, name: str) -> bool:
    """Whether a table's header is that of a server, or of a table in it."""
    header = _HEADER.fullmatch(line.rstrip("\r\n"))
    if header is None:
        return False
    try:
        keys = tomllib.loads(f"{header['key']} = 0")
    except tomllib.TOMLDecodeError:
        return False
    servers = keys.get("servers")
    return isinstance(servers, dict) and name in servers

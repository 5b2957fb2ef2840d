"""Edits TOML, keeping every other character."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from server.clients.json_text import Path, nested


class TomlText:
    """A TOML text; each edit returns a new text.

    Raises ValueError if it is not TOML. An edit may return a text that does not mean what was
    asked: the caller parses it and compares.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.values: Any = tomllib.loads(text)
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def put(self, keys: Path, value: object, comments: Sequence[str] = ()) -> str:
        """Sets the value at a path; a new table is appended to the file, below its comments."""
        parent = self._at(keys[:-1])
        header = self._header(keys[:-1])
        if isinstance(value, Mapping) and self._at(keys) is None:
            made = self._append(tomlkit.dumps(nested(keys, value)), comments)
            with suppress(tomllib.TOMLDecodeError):  # the tables are written inline
                if tomllib.loads(made):
                    return made
        if header is None or (isinstance(parent, Mapping) and keys[-1] in parent):
            return self._changed(keys, lambda table: table.__setitem__(keys[-1], value))
        line = tomlkit.dumps({str(keys[-1]): value}).replace("\n", self._newline)
        lines = self.text.splitlines(keepends=True)
        if not lines[header].endswith("\n"):
            lines[header] += self._newline
        return "".join([*lines[: header + 1], line, *lines[header + 1 :]])

    def add(self, keys: Path, item: object) -> str:
        """Appends an item to the list at a path; creates what is missing."""
        if self._at(keys) is None:
            return self.put(keys, [item])
        return self._changed(keys, lambda table: table[keys[-1]].append(item))

    def remove(self, keys: Path) -> str:
        """Removes the value at a path: a table with its header, or a line."""
        first = self._header(keys)
        if first is None:
            return self._changed(keys, lambda table: table.__delitem__(keys[-1]))
        lines = self.text.splitlines(keepends=True)
        end = first + 1
        while end < len(lines):
            named = _header_of(lines[end])
            if named is not None and named[: len(keys)] != list(keys):
                break
            end += 1
        # Comments above the next header belong to it, and those at the end to the user.
        while end - 1 > first and _is_apart(lines[end - 1]):
            end -= 1
        if first and not lines[first - 1].strip():  # the blank line that sets it off
            first -= 1
        return "".join([*lines[:first], *lines[end:]])

    def _append(self, block: str, comments: Sequence[str]) -> str:
        header, _, rest = block.partition("\n")
        head = [header, *(f"# {comment}" for comment in comments)]
        shown = self._newline.join([*head, *rest.split("\n")])
        gap = self._newline if self.text.strip() else ""
        ended = not self.text or self.text.endswith("\n")
        return f"{self.text}{'' if ended else self._newline}{gap}{shown}"

    def _changed(self, keys: Path, change: Callable[[Any], None]) -> str:
        try:
            document = tomlkit.parse(self.text.replace("\r\n", "\n"))
            table: Any = document
            for key in keys[:-1]:
                table = table[key]
            change(table)
            return tomlkit.dumps(document).replace("\n", self._newline)
        except (TOMLKitError, TypeError, AttributeError, KeyError) as error:
            raise ValueError(f"its {'.'.join(map(str, keys))} cannot be changed") from error

    def _at(self, keys: Path) -> Any:  # noqa: ANN401  # any value in the file
        found = self.values
        for key in keys:
            try:
                found = found[key]
            except (KeyError, IndexError, TypeError):
                return None
        return found

    def _header(self, keys: Path) -> int | None:
        """Returns the line of the header `[a.b]` of a table."""
        for number, line in enumerate(self.text.splitlines(keepends=True)):
            if _header_of(line) == list(keys):
                return number
        return None


def _header_of(line: str) -> list[str] | None:
    """Returns the keys of a line `[a.b]`; None for any other line."""
    if not line.lstrip().startswith("["):
        return None
    try:
        table: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return None
    keys = []
    while isinstance(table, dict) and table:
        ((key, table),) = table.items()
        keys.append(key)
    return keys if isinstance(table, dict) else [*keys, "[]"]


def _is_apart(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")

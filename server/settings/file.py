"""The settings file: servers and rules are written into it, everything else stays as it is."""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array, Comment, Table, Whitespace

from server.settings_error import SettingsError

_BYTE_ORDER_MARK = "\ufeff"
_PRIVATE = 0o600
_INDENT = "  "
_COLUMNS = 90
"""Of entries in one line."""


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table that the user has named, such as a server, to be written.

    Attributes:
        name: Its name in the settings.
        fields: What it sets.
        comments: Lines at its head, such as where it comes from.
    """

    name: str
    fields: Mapping[str, Any]
    comments: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListEntries:
    """Entries of a list of the settings.

    Attributes:
        table: The table that has the list, such as `policy`.
        key: Its name there.
        entries: The entries.
        comment: A line that stands before them.
    """

    table: str
    key: str
    entries: tuple[str, ...]
    comment: str


class SettingsFile:
    """One settings file, read once and written as a whole.

    Args:
        path: Where it is; it need not exist yet.

    Raises:
        SettingsError: If it cannot be read, or is not TOML.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._text = path.read_bytes().decode() if path.exists() else ""
            self._values = tomllib.loads(self._text.removeprefix(_BYTE_ORDER_MARK))
        except OSError as error:
            raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SettingsError(f"{path} is not TOML: {error}.") from error

    @property
    def text(self) -> str:
        """What stands in it."""
        return self._text

    @property
    def values(self) -> Mapping[str, Any]:
        """What it sets."""
        return self._values

    def named(self, group: str) -> Mapping[str, Any]:
        """The tables `[GROUP.NAME]` in the file, such as those of servers, by name."""
        found = self._values.get(group, {})
        return found if isinstance(found, dict) else {}

    @property
    def allowing(self) -> Any:  # noqa: ANN401  # whatever the file has
        """The rules that allow calls, as they are written; not looked at further."""
        policy = self._values.get("policy", {})
        return policy.get("allow", []) if isinstance(policy, dict) else None

    def put(self, group: str, tables: list[NamedTable]) -> None:
        """Writes tables `[GROUP.NAME]`, each in place of that of the same name, or at the end.

        The file becomes readable by its owner alone, because servers have secrets.
        """
        named = dict(self.named(group)) | {each.name: each.fields for each in tables}
        expected = {**self._values, group: named}
        text = self._changed(lambda document: _put_tables(document, group, tables), expected)
        if text is None:
            raise SettingsError(
                f"{self.path} cannot be changed safely: {group} is not written as tables"
                f" [{group}.NAME], one after the other. Write it so; nothing was changed."
            )
        self._replace(text, _PRIVATE)

    def allow(self, rules: Sequence[str]) -> None:
        """Adds rules to those that allow calls; the file keeps its mode."""
        there, text = self.allowing, None
        if isinstance(there, list):
            new = [rule for rule in dict.fromkeys(rules) if rule not in there]
            if not new:
                return
            text = self._changed(
                lambda document: _add_rules(document, new),
                _extended(self._values, "policy", "allow", new),
            )
        if text is None:
            raise SettingsError(
                f"{self.path} cannot be changed safely: write `allow = [...]`, a list, below"
                " [policy]. Nothing was changed."
            )
        self.write(text)

    def with_entries(self, added: Sequence[ListEntries]) -> str:
        """Returns the text that the file would have with more entries in its lists."""
        expected, text = self._values, None
        with suppress(AttributeError, TypeError):  # no table, or no list
            for each in added:
                expected = _extended(expected, each.table, each.key, each.entries)
            text = self._changed(lambda document: add_entries(document, added), expected)
        if text is None:
            lists = ", ".join(dict.fromkeys(f"{each.table}.{each.key}" for each in added))
            raise SettingsError(
                f"{self.path} cannot be changed safely: write {lists} as a list below its table."
                " Nothing was changed."
            )
        return text

    def write(self, text: str) -> None:
        """Puts a text in place of the file at once; it keeps its mode."""
        self._replace(text, self.path.stat().st_mode & 0o777 if self.path.exists() else _PRIVATE)

    def _changed(
        self, change: Callable[[tomlkit.TOMLDocument], None], expected: Mapping[str, Any]
    ) -> str | None:
        """The text after a change; None where it would say anything else than what is expected."""
        text = self._text.removeprefix(_BYTE_ORDER_MARK)
        windows = "\r\n" in text
        try:
            document = tomlkit.parse(text.replace("\r\n", "\n"))
            change(document)
            written = tomlkit.dumps(document)
            if tomllib.loads(written) != expected:
                return None
        except (TOMLKitError, TypeError, ValueError):
            return None
        mark = _BYTE_ORDER_MARK if self._text.startswith(_BYTE_ORDER_MARK) else ""
        return mark + (written.replace("\n", "\r\n") if windows else written)

    def _replace(self, text: str, mode: int) -> None:
        """Puts a text in place of the file at once; a link to it stays one."""
        target = self.path.resolve()
        try:
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:  # made with mode 0600
                    os.fchmod(descriptor, mode)
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


def _extended(
    values: Mapping[str, Any], table: str, key: str, entries: Sequence[str]
) -> dict[str, Any]:
    """The values with more entries in the list of a table."""
    there = values.get(table, {})
    return {**values, table: {**there, key: [*there.get(key, ()), *entries]}}


def add_entries(document: tomlkit.TOMLDocument, added: Sequence[ListEntries]) -> None:
    """Adds entries to the lists of a document, each group beneath its comment."""
    for each in added:
        array = _list_in(document, each.table, each.key)
        ends_line = array.as_string().endswith("\n]")
        array.add_line(comment=each.comment, indent=_INDENT, add_comma=False)
        for row in _rows(each.entries):
            array.add_line(*row, indent=_INDENT)
        if not ends_line:
            array.add_line(indent="", add_comma=False)


def _rows(entries: Sequence[str]) -> Iterator[list[str]]:
    """Yields as many entries at a time as fit into a line."""
    row: list[str] = []
    for entry in entries:
        if row and sum(len(each) + len('"", ') for each in (*row, entry)) > _COLUMNS:
            yield row
            row = []
        row.append(entry)
    yield row


def _add_rules(document: tomlkit.TOMLDocument, rules: Sequence[str]) -> None:
    array = _list_in(document, "policy", "allow")
    for rule in rules:
        array.append(rule)


def _list_in(document: tomlkit.TOMLDocument, name: str, key: str) -> Array:
    """Returns a list of a table, both made where they are missing."""
    table: Any = document.setdefault(name, tomlkit.table())
    if key not in table:
        following = _pop_trailing(table) if isinstance(table, Table) else []
        table.add(key, tomlkit.array())
        for item in following:
            table.add(item)
    found: Array = table[key]
    return found


def _put_tables(document: tomlkit.TOMLDocument, group: str, tables: list[NamedTable]) -> None:
    named: Any = document.setdefault(group, tomlkit.table(is_super_table=True))
    for each in tables:
        old = named.get(each.name)
        following = _pop_trailing(old) if isinstance(old, Table) else []
        table = tomlkit.table()
        for comment in each.comments:
            table.add(tomlkit.comment(comment))
        for key, value in sorted(each.fields.items(), key=_is_table):
            table.add(key, value)
        for item in following:
            _last(table).add(item)
        named[each.name] = table


def _is_table(item: tuple[str, object]) -> bool:
    return isinstance(item[1], Mapping)


def _pop_trailing(table: Table) -> list[Comment | Whitespace]:
    """Takes the comments and blank lines off a table's end, as they are about what follows it."""
    body = _last(table).value.body
    trailing: list[Comment | Whitespace] = []
    while body and isinstance(item := body[-1][1], Comment | Whitespace):
        trailing.insert(0, item)
        body.pop()
    return trailing


def _last(table: Table) -> Table:
    """The table in whose text another one ends: itself, or the last one in it."""
    body = table.value.body
    return _last(body[-1][1]) if body and isinstance(body[-1][1], Table) else table

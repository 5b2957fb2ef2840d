"""Writes servers and rules into the settings file, preserving everything else."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Array, Comment, Table, Whitespace

from server.clients.toml_text import TomlText
from server.settings_file import SettingsError
from storage.keeping.atomic import atomic_file
from storage.locks import locked

_BYTE_ORDER_MARK = "\ufeff"
PRIVATE = 0o600
_INDENT = "  "
_COLUMNS = 90
"""Line length for entries."""


@dataclass(frozen=True, slots=True)
class NamedTable:
    """A table with a user-defined name, such as a server, to be written."""

    name: str
    fields: Mapping[str, Any]
    comments: tuple[str, ...] = ()  # comment lines at its head, such as its origin


@dataclass(frozen=True, slots=True)
class ListEntries:
    """Entries to add to a list in the settings."""

    table: str  # the table that contains the list, such as `policy`
    key: str
    entries: tuple[str, ...]
    comment: str


class SettingsFile:
    """One settings file, read once and written as a whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.text = path.read_bytes().decode() if path.exists() else ""
            without_mark = self.text.removeprefix(_BYTE_ORDER_MARK)
            self.values: Mapping[str, Any] = tomllib.loads(without_mark)
        except OSError as error:
            raise SettingsError(f"{path} cannot be read: {error.strerror}.") from error
        except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise SettingsError(f"{path} is not TOML: {error}.") from error

    def tables_in(self, group: str) -> Mapping[str, Any]:
        """Returns the tables `[GROUP.NAME]`, such as those of servers, by name."""
        found = self.values.get(group, {})
        return found if isinstance(found, dict) else {}

    @property
    def allowing(self) -> Any:  # noqa: ANN401  # any value in the file
        """The rules that allow calls, as written and unvalidated."""
        policy = self.values.get("policy", {})
        return policy.get("allow", []) if isinstance(policy, dict) else None

    def put(self, group: str, tables: list[NamedTable]) -> None:
        """Writes tables as `with_tables` does.

        Makes the file readable by its owner alone, because servers have secrets.
        """
        self.write(self.with_tables(group, tables), mode=PRIVATE)

    def with_tables(self, group: str, tables: list[NamedTable]) -> str:
        """Returns the text of the file with tables `[GROUP.NAME]`.

        Each replaces the table of the same name, or is written at the end.
        """
        named = dict(self.tables_in(group)) | {each.name: each.fields for each in tables}
        expected = {**self.values, group: named}
        text = self._text_after(lambda document: _put_tables(document, group, tables), expected)
        if text is None:
            raise SettingsError(
                f"{self.path} cannot be changed safely: {group} is not written as tables"
                f" [{group}.NAME], one after the other. Write it so; nothing was changed."
            )
        return text

    def without_table(self, group: str, name: str) -> str:
        """Returns the text of the file without a table `[GROUP.NAME]`."""
        mark = _BYTE_ORDER_MARK if self.text.startswith(_BYTE_ORDER_MARK) else ""
        expected: dict[str, Any] = copy.deepcopy(dict(self.values))
        del expected[group][name]
        with suppress(ValueError):
            text = TomlText(self.text.removeprefix(mark)).remove((group, name))
            written = tomllib.loads(text)
            if {group: {}, **written} == {group: {}, **expected}:
                return mark + text
        raise SettingsError(
            f"{self.path} cannot be changed safely: remove {group}.{name} by hand. Nothing was"
            " changed."
        )

    def allow(self, rules: Sequence[str]) -> None:
        """Adds rules to policy.allow; the file keeps its mode."""
        there, text = self.allowing, None
        if isinstance(there, list):
            new = [rule for rule in dict.fromkeys(rules) if rule not in there]
            if not new:
                return
            text = self._text_after(
                lambda document: _list_in(document, "policy", "allow").extend(new),
                _with_added(self.values, "policy", "allow", new),
            )
        if text is None:
            raise SettingsError(
                f"{self.path} cannot be changed safely: write `allow = [...]`, a list, below"
                " [policy]. Nothing was changed."
            )
        self.write(text)

    def with_entries(self, added: Sequence[ListEntries]) -> str:
        """Returns the text of the file with more entries in its lists."""
        expected, text = self.values, None
        with suppress(AttributeError, TypeError):  # no table, or no list
            for each in added:
                expected = _with_added(expected, each.table, each.key, each.entries)
            text = self._text_after(lambda document: add_entries(document, added), expected)
        if text is None:
            lists = ", ".join(dict.fromkeys(f"{each.table}.{each.key}" for each in added))
            raise SettingsError(
                f"{self.path} cannot be changed safely: write {lists} as a list below its table."
                " Nothing was changed."
            )
        return text

    def with_value(self, key: str, value: object) -> str:
        """Returns the text of the file with one setting changed; None takes it out."""
        *groups, name = key.split(".")
        expected: dict[str, Any] = copy.deepcopy(dict(self.values))
        table = expected
        for group in groups:
            table = table.setdefault(group, {})
        if value is not None:
            table[name] = value
        elif name in table:
            del table[name]
        else:
            return self.text
        text = self._text_after(lambda document: _put_value(document, key, value), expected)
        if text is None:
            raise SettingsError(
                f"{self.path} cannot be changed safely: write {name} by hand"
                + (f" below [{'.'.join(groups)}]." if groups else " above the tables.")
                + " Nothing was changed."
            )
        return text

    def write(self, text: str, *, mode: int | None = None) -> None:
        """Replaces the file's text, as `replace_text` does."""
        replace_text(self.path, self.text, text, mode)

    def _text_after(
        self, change: Callable[[tomlkit.TOMLDocument], None], expected: Mapping[str, Any]
    ) -> str | None:
        """Returns the text after a change; None unless it parses to the expected values."""
        text = self.text.removeprefix(_BYTE_ORDER_MARK)
        windows = "\r\n" in text
        try:
            document = tomlkit.parse(text.replace("\r\n", "\n"))
            change(document)
            written = tomlkit.dumps(document)
            if tomllib.loads(written) != expected:
                return None
        except (TOMLKitError, TypeError, ValueError):
            return None
        mark = _BYTE_ORDER_MARK if self.text.startswith(_BYTE_ORDER_MARK) else ""
        return mark + (written.replace("\n", "\r\n") if windows else written)


def replace_text(path: Path, before: str, text: str, mode: int | None = None) -> None:
    """Replaces a settings file's text atomically, unless it is no longer what was read.

    A lock keeps two writers from replacing the same text. The file keeps its mode unless one is
    given, and a symbolic link to it. A new file is private.
    """
    target = path.resolve()
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(target.with_name(f".{target.name}.lock"), wait=True):
            is_new = not target.exists()
            if ("" if is_new else target.read_bytes().decode(errors="replace")) != before:
                raise SettingsError(f"{path} changed meanwhile. Nothing was written; try again.")
            if mode is None:
                mode = PRIVATE if is_new else target.stat().st_mode & 0o777
            with atomic_file(target, replace=True) as temporary:
                temporary.write_bytes(text.encode())
                temporary.chmod(mode)
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be written: {error.strerror}. Nothing was changed."
        ) from error


def _with_added(
    values: Mapping[str, Any], table: str, key: str, entries: Sequence[str]
) -> dict[str, Any]:
    """Returns the values with more entries in a list."""
    there = values.get(table, {})
    return {**values, table: {**there, key: [*there.get(key, ()), *entries]}}


def add_entries(document: tomlkit.TOMLDocument, added: Sequence[ListEntries]) -> None:
    """Adds entries to the lists of a document, each group below its comment."""
    for each in added:
        array = _list_in(document, each.table, each.key)
        ends_line = array.as_string().endswith("\n]")
        array.add_line(comment=each.comment, indent=_INDENT, add_comma=False)
        for row in _rows(each.entries):
            array.add_line(*row, indent=_INDENT)
        if not ends_line:
            array.add_line(indent="", add_comma=False)


def _rows(entries: Sequence[str]) -> Iterator[list[str]]:
    """Splits entries into rows that fit on a line."""
    row: list[str] = []
    for entry in entries:
        if row and sum(len(each) + len('"", ') for each in (*row, entry)) > _COLUMNS:
            yield row
            row = []
        row.append(entry)
    yield row


def _list_in(document: tomlkit.TOMLDocument, name: str, key: str) -> Array:
    """Returns a list of a table, creating both if missing."""
    table: Any = document.setdefault(name, tomlkit.table())
    if key not in table:
        following = _pop_trailing(table) if isinstance(table, Table) else []
        table.add(key, tomlkit.array())
        for item in following:
            table.add(item)
    found: Array = table[key]
    return found


def _put_value(document: tomlkit.TOMLDocument, key: str, value: object) -> None:
    *groups, name = key.split(".")
    table: Any = document
    for group in groups:
        table = table.setdefault(group, tomlkit.table())
    if value is None:
        del table[name]
    elif name in table or not isinstance(table, Table):
        table[name] = value
    else:
        following = _pop_trailing(table)
        table.add(name, value)
        for item in following:
            table.add(item)


def _put_tables(document: tomlkit.TOMLDocument, group: str, tables: list[NamedTable]) -> None:
    named: Any = document.setdefault(group, tomlkit.table(is_super_table=True))
    for each in tables:
        old = named.get(each.name)
        following = _pop_trailing(old) if isinstance(old, Table) else []
        table = tomlkit.table()
        for comment in each.comments:
            table.add(tomlkit.comment(comment))
        fields = sorted(each.fields.items(), key=lambda item: isinstance(item[1], Mapping))
        for key, value in fields:  # tables come last
            table.add(key, value)
        for item in following:
            _last(table).add(item)
        named[each.name] = table


def _pop_trailing(table: Table) -> list[Comment | Whitespace]:
    """Removes comments and blank lines from a table's end, as they belong to what follows."""
    body = _last(table).value.body
    trailing: list[Comment | Whitespace] = []
    while body and isinstance(item := body[-1][1], Comment | Whitespace):
        trailing.insert(0, item)
        body.pop()
    return trailing


def _last(table: Table) -> Table:
    """Returns the table in whose text another one ends: itself, or the last one in it."""
    body = table.value.body
    return _last(body[-1][1]) if body and isinstance(body[-1][1], Table) else table

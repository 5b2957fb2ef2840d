"""Builds records from the fields of a file, by a directory's mapping."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, TypeVar

from storage.directory.models import Directory, Record, field_name
from storage.directory.values import MAX_NAME, RecordValues
from storage.tokenize import fold

MAX_KEY = 200
"""Maximum characters of a key; a label, by which a record's items are found, has up to 256."""

_T = TypeVar("_T")


class Fields:
    """Builds records of a directory from the fields of a file."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        named = (
            directory.name_field,
            directory.key,
            directory.link,
            directory.aliases,
            *directory.group_fields,
            *directory.texts,
            *directory.facts,
            *directory.items,
        )
        self._known = {field_name(name): name for name in named if name}

    def record(self, number: int, row: Mapping[str, Any]) -> Record | None:
        """Builds the record of a row; None if it has no name."""
        directory, read = self._directory, RecordValues(number)
        values = self._values(read, row)
        key = read.line(directory.key, values.get(directory.key))
        name = read.line(directory.name_field, values.pop(directory.name_field, None), MAX_NAME)
        if not fold(name):
            return None
        link = read.line(directory.link, values.pop(directory.link, None))
        aliases = read.names(directory.aliases, values.pop(directory.aliases, None))
        groups = {each: read.names(each, values.pop(each, None)) for each in directory.group_fields}
        texts = {each: read.text(each, values.pop(each, None)) for each in directory.texts}
        items = {each: read.items(each, values.pop(each, None)) for each in directory.items}
        facts = {each: read.fact(each, value) for each, value in values.items()}
        first_group = next(iter(groups.get(next(iter(directory.groups), ""), ())), "")
        return Record(
            key=_short(key or f"{fold(name)}|{fold(first_group)}"),
            name=name,
            aliases=aliases,
            groups=_without_empty(groups),
            texts=_without_empty(texts),
            facts=_without_empty(facts),
            items=_without_empty(items),
            link=link,
        )

    def _values(self, read: RecordValues, row: Mapping[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for written, value in row.items():
            field = self._known.get(field_name(written), written.strip())
            if field in values:
                raise read.refusal(field, value, "a field that comes once")
            if field:
                values[field] = value
        return values


def united(records: Iterable[Record]) -> tuple[dict[str, Record], list[str]]:
    """Merges records with the same key and name, and returns all by key.

    The first record wins where two differ. Two records with one key and different names, such as
    people who share a page, stay separate: the second gets a key made of both. Returns the records
    in order, and the names of merged records.
    """
    found: dict[str, Record] = {}
    merged = []
    for record in records:
        known = found.get(record.key)
        if known is not None and fold(known.name) != fold(record.name):
            record = replace(record, key=_short(f"{record.key}#{fold(record.name)}"))  # noqa: PLW2901  # the same record under another key
            known = found.get(record.key)
        if known is not None:
            merged.append(record.name)
        found[record.key] = record if known is None else _union(known, record)
    return found, merged


def _union(first: Record, second: Record) -> Record:
    return replace(
        first,
        aliases=tuple(dict.fromkeys((*first.aliases, *second.aliases))),
        groups=_both(first.groups, second.groups),
        texts={**second.texts, **first.texts},
        facts={**second.facts, **first.facts},
        items=_both(first.items, second.items),
        link=first.link or second.link,
    )


def _both(
    first: Mapping[str, tuple[_T, ...]], second: Mapping[str, tuple[_T, ...]]
) -> dict[str, tuple[_T, ...]]:
    united_values = {}
    for field in dict.fromkeys((*first, *second)):
        values = list(first.get(field, ()))
        values += [each for each in second.get(field, ()) if each not in values]
        united_values[field] = tuple(values)
    return united_values


def _without_empty(values: Mapping[str, _T]) -> dict[str, _T]:
    return {field: value for field, value in values.items() if value}


def _short(key: str) -> str:
    if len(key) <= MAX_KEY:
        return key
    return f"{key[: MAX_KEY - 17]}#{sha256(key.encode()).hexdigest()[:16]}"

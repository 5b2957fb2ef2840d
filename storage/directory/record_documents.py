"""Converts records and items to contexts: texts, metadata, and digests of versions.

A record is a document: one chunk with a short description, then its running texts, each under its
field's name. An item is a separate document, so that its year can be filtered by. An item of
several records, such as a paper by two authors, is stored once with all of them as `owner`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from storage.contexts.ingestion import PreparedChunk, chunk_terms
from storage.directory.models import Directory, Item, Record
from storage.models import NewContext
from storage.reading.chunk import chunk
from storage.tokenize import fold_accents

OWNER = "owner"  # the key in an item's metadata for the keys of its records

YEAR = "year"
TITLE = "title"

_LAYOUT = 1
"""Increase it when this module's output changes, so that a new import replaces old contexts."""

_SHOWN_TITLE = 120
_RUNNING_TEXT = 200  # minimum characters of a detail with its own chunk
_WORDS = re.compile(r"[^\W_]+")


def record_digest(record: Record) -> str:
    """Returns a hash of everything in a record."""
    return _digest(asdict(record))


def item_digest(item: Item) -> str:
    """Returns a hash of everything in an item except its owners."""
    return _digest(asdict(item))


def item_id(item: Item) -> str:
    """Hashes the words of a citation without case and accents; citations of one item share it."""
    words = _WORDS.findall(fold_accents(item.text).casefold())
    return sha256(" ".join(words or [item.text]).encode()).hexdigest()[:32]


def record_context(directory: Directory, record: Record, digest: str) -> NewContext:
    """Builds the document of a record, without its text."""
    metadata: dict[str, Any] = {**record.facts, **{k: list(v) for k, v in record.groups.items()}}
    if record.link:
        metadata[directory.link] = record.link
    if record.aliases:
        metadata[directory.aliases] = list(record.aliases)
    return NewContext(
        title=record.name,
        entities=(record.name, *record.aliases),
        metadata=metadata,
        raw_type=directory.name,
        raw_id=record.key,
        sha256=digest,
        one_of_many=True,
    )


def item_context(items_type: str, item: Item, owners: Iterable[str], digest: str) -> NewContext:
    """Builds the document of an item, without its text."""
    metadata: dict[str, Any] = {**item.details, OWNER: sorted(owners)}
    if item.title:
        metadata[TITLE] = item.title
    if item.year is not None:
        metadata[YEAR] = item.year
    year = item.year
    return NewContext(
        title=_shown_title(item),
        event_time=None if year is None else datetime(year, 1, 1, tzinfo=UTC).timestamp(),
        metadata=metadata,
        raw_type=items_type,
        raw_id=item_id(item),
        sha256=digest,
        one_of_many=True,
    )


def record_chunks(record: Record) -> list[PreparedChunk]:
    """Builds the chunks of a record: a short description and its running texts."""
    return list(_chunks(record.name, [("", _in_short(record)), *record.texts.items()]))


def item_chunks(item: Item) -> list[PreparedChunk]:
    """Builds the chunks of an item: its citation, and its abstract if it has one."""
    running = (pair for pair in item.details.items() if len(pair[1]) >= _RUNNING_TEXT)
    return list(_chunks(_shown_title(item), [("", item.text), *running]))


def values_of(metadata: Mapping[str, Any], field: str) -> tuple[str, ...]:
    """Returns the values in a list of a context's metadata."""
    values = metadata.get(field)
    return tuple(map(str, values)) if isinstance(values, list) else ()


def _in_short(record: Record) -> str:
    described: Mapping[str, str] = {
        **record.facts,
        **{field: "; ".join(values) for field, values in record.groups.items()},
    }
    lines = (f"{field.replace('_', ' ')}: {value}" for field, value in described.items())
    return "\n".join([" / ".join([record.name, *record.aliases]), *lines])


def _chunks(title: str, fields: Iterable[tuple[str, str]]) -> Iterator[PreparedChunk]:
    start = 0
    for field, text in fields:
        for piece in chunk(text, markdown=False):
            title_terms, body_terms = chunk_terms(title, field, piece.content)
            yield PreparedChunk(
                heading=field,
                content=piece.content,
                start=start + piece.start,
                title_terms=title_terms,
                body_terms=body_terms,
            )
        start += len(text) + 2  # the empty line between two fields


def _shown_title(item: Item) -> str:
    """Returns an item's title, or the beginning of its citation."""
    if item.title or len(item.text) <= _SHOWN_TITLE:
        return item.title or item.text
    return f"{item.text[: _SHOWN_TITLE - 1].rstrip()}…"


def _digest(value: Mapping[str, Any]) -> str:
    canonical = json.dumps([_LAYOUT, value], ensure_ascii=False, sort_keys=True)
    return sha256(canonical.encode()).hexdigest()

"""Writes records with their items: adds new ones, replaces changed ones, removes orphaned items.

Each batch is compared and written in one transaction under one identity, so that concurrent imports
lose nothing. The slow part, splitting and analysing texts, happens before.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from storage.contexts.contexts import delete_contexts, insert_whole
from storage.contexts.ingestion import PreparedChunk, as_json, normalized
from storage.database import View, update_row
from storage.directory.models import Directory, Item, Record
from storage.directory.record_documents import (
    OWNER,
    item_chunks,
    item_context,
    item_digest,
    item_id,
    record_chunks,
    record_context,
    record_digest,
)
from storage.models import ContextType

ItemKey = tuple[str, str]  # the raw_type and the raw_id of an item


_COLUMNS = "x.seq, x.sha256, x.create_time, x.metadata"


@dataclass(frozen=True, slots=True)
class _Row:
    """A stored document."""

    seq: int
    digest: str
    create_time: float
    metadata: Mapping[str, object]


class Batch:
    """Records of a directory, by key, to be written in one transaction."""

    def __init__(self, directory: Directory, records: Mapping[str, Record]) -> None:
        self._directory = directory
        self._records = records
        self._digests = {key: record_digest(record) for key, record in records.items()}
        self._chunks: dict[str, list[PreparedChunk]] = {}
        self._chunks_of_items: dict[ItemKey, list[PreparedChunk]] = {}

    def prepare(self, view: View) -> bool:
        """Splits and analyses the changed texts; returns whether any record changed."""
        changed = self._changed(view)
        for key in changed:
            self._chunks[key] = record_chunks(self._records[key])
        wanted = self._wanted(changed)
        stored = _items_by_id(view, wanted)
        for place, (item, _) in wanted.items():
            if place not in stored or stored[place].digest != item_digest(item):
                self._item_chunks(place, item)
        return bool(changed)

    def write(self, view: View) -> tuple[int, int]:
        """Stores the records that changed; returns the number of added and of replaced ones."""
        now = time.time()
        stored = _documents(view, self._directory.name, self._records)
        changed = self._changed(view)
        for key in changed:
            earlier = stored.get(key)
            if earlier is not None:
                delete_contexts(view.connection, [earlier.seq])
            record = self._records[key]
            insert_whole(
                view,
                normalized(record_context(self._directory, record, self._digests[key])),
                self._chunks.get(key) or record_chunks(record),
                now,
                now if earlier is None else earlier.create_time,
            )
        self._write_items(view, changed, now)
        replaced = sum(key in stored for key in changed)
        return len(changed) - replaced, replaced

    def _changed(self, view: View) -> list[str]:
        """Returns the keys of records that differ from the stored ones, or lack some items."""
        stored = _documents(view, self._directory.name, self._records)
        counts = _owned(view, self._directory, self._records, "j.value, count(*)", "GROUP BY 1")
        items = {row[0]: int(row[1]) for row in counts}
        return [
            key
            for key in self._records
            if key not in stored
            or stored[key].digest != self._digests[key]
            or items.get(key, 0) < len(self._wanted([key]))
        ]

    def _wanted(self, keys: Collection[str]) -> dict[ItemKey, tuple[Item, set[str]]]:
        """Returns the items of some records, each with its owners among them."""
        wanted: dict[ItemKey, tuple[Item, set[str]]] = {}
        for key in keys:
            for field, items in self._records[key].items.items():
                for item in items:
                    place = (self._directory.items_type(field), item_id(item))
                    wanted.setdefault(place, (item, set()))[1].add(key)
        return wanted

    def _write_items(self, view: View, changed: Collection[str], now: float) -> None:
        wanted = self._wanted(changed)
        stored = _items_of(view, self._directory, changed)
        stored |= _items_by_id(view, wanted)
        for key, row in stored.items():
            item, owners = wanted.pop(key, (None, set()))
            owners |= _owners(row) - set(changed)
            if item is not None and row.digest != item_digest(item):
                delete_contexts(view.connection, [row.seq])
                self._insert_item(view, key, item, owners, (now, row.create_time))
            else:
                _set_owners(view, row, owners)
        for key, (item, owners) in wanted.items():
            self._insert_item(view, key, item, owners, (now, now))

    def _insert_item(
        self, view: View, key: ItemKey, item: Item, owners: set[str], times: tuple[float, float]
    ) -> None:
        new = item_context(key[0], item, owners, item_digest(item))
        insert_whole(view, normalized(new), self._item_chunks(key, item), *times)

    def _item_chunks(self, key: ItemKey, item: Item) -> list[PreparedChunk]:
        if key not in self._chunks_of_items:
            self._chunks_of_items[key] = item_chunks(item)
        return self._chunks_of_items[key]


def stored_keys(view: View, directory: Directory) -> list[str]:
    """Returns the keys of the records stored under exactly this identity."""
    own = view.own("x")
    rows = view.rows(
        f"SELECT x.raw_id FROM contexts x WHERE {own.sql} AND x.raw_type = ?"
        f" AND x.context_type = '{ContextType.DOCUMENT}'",
        (*own.values, directory.name),
    )
    return [str(row[0]) for row in rows]


def remove_records(view: View, directory: Directory, keys: Collection[str]) -> int:
    """Removes records and their orphaned items, and returns the number of removed records."""
    records = _documents(view, directory.name, keys)
    delete_contexts(view.connection, [row.seq for row in records.values()])
    for row in _items_of(view, directory, keys).values():
        _set_owners(view, row, _owners(row) - set(keys))
    return len(records)


def _set_owners(view: View, row: _Row, owners: set[str]) -> None:
    if not owners:
        delete_contexts(view.connection, [row.seq])
    elif owners != _owners(row):
        metadata = as_json({**row.metadata, OWNER: sorted(owners)})
        update_row(view.connection, "contexts", {"metadata": metadata}, {"seq": row.seq})


def _owners(row: _Row) -> set[str]:
    owners = row.metadata.get(OWNER)
    return set(owners) if isinstance(owners, list) else set()


def _documents(view: View, raw_type: str, raw_ids: Collection[str]) -> dict[str, _Row]:
    own = view.own("x")
    rows = view.rows(
        f"SELECT x.raw_id, {_COLUMNS} FROM json_each(?) j"
        f" CROSS JOIN contexts x ON {own.sql} AND x.raw_type = ? AND x.raw_id = j.value"
        f" AND x.context_type = '{ContextType.DOCUMENT}'",
        (json.dumps(list(raw_ids)), *own.values, raw_type),
    )
    return {row["raw_id"]: _row(row) for row in rows}


def _items_by_id(view: View, wanted: Collection[ItemKey]) -> dict[ItemKey, _Row]:
    found: dict[ItemKey, _Row] = {}
    for raw_type in {key[0] for key in wanted}:
        rows = _documents(view, raw_type, [key[1] for key in wanted if key[0] == raw_type])
        found |= {(raw_type, raw_id): row for raw_id, row in rows.items()}
    return found


def _items_of(view: View, directory: Directory, keys: Collection[str]) -> dict[ItemKey, _Row]:
    rows = _owned(view, directory, keys, f"x.raw_type, x.raw_id, {_COLUMNS}")
    return {(row["raw_type"], row["raw_id"]): _row(row) for row in rows}


def _owned(
    view: View, directory: Directory, keys: Collection[str], columns: str, grouped: str = ""
) -> list[sqlite3.Row]:
    own = view.own("x")
    types = directory.raw_types[1:]
    return view.rows(
        f"SELECT {columns} FROM json_each(?) j CROSS JOIN labels l"
        " ON l.user_id = ? AND l.key = ? AND l.value = j.value"
        f" CROSS JOIN contexts x ON x.seq = l.context_seq AND {own.sql}"
        f" AND x.raw_type IN ({', '.join('?' * len(types))}) {grouped}",
        (json.dumps(list(keys)), view.user_id, OWNER, *own.values, *types),
    )


def _row(row: sqlite3.Row) -> _Row:
    return _Row(row["seq"], row["sha256"], row["create_time"], json.loads(row["metadata"]))

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

from storage.contexts.contexts import insert_whole
from storage.contexts.ingestion import PreparedChunk, as_json, normalized
from storage.database import exactly
from storage.directory.models import Directory, Item, Record
from storage.directory.shelving import (
    OWNER,
    item_chunks,
    item_context,
    item_digest,
    item_id,
    record_chunks,
    record_context,
    record_digest,
)
from storage.models import ContextType, Identity

ItemKey = tuple[str, str]
"""The raw_type and the raw_id of an item."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A stored document."""

    seq: int
    digest: str
    create_time: float
    metadata: Mapping[str, object]


class Batch:
    """Records to be written in one transaction."""

    def __init__(
        self, identity: Identity, directory: Directory, records: Mapping[str, Record]
    ) -> None:
        self._identity = identity
        self._directory = directory
        self._records = records
        self._digests = {key: record_digest(record) for key, record in records.items()}
        self._chunks: dict[str, list[PreparedChunk]] = {}
        self._chunks_of_items: dict[ItemKey, list[PreparedChunk]] = {}

    def prepare(self, connection: sqlite3.Connection) -> bool:
        """Splits and analyses the changed texts; returns whether any record changed."""
        changed = self._changed(connection)
        for key in changed:
            self._chunks[key] = record_chunks(self._records[key])
        wanted = self._wanted(changed)
        stored = _items_by_id(connection, self._identity, wanted)
        for place, (item, _) in wanted.items():
            if place not in stored or stored[place].digest != item_digest(item):
                self._item_chunks(place, item)
        return bool(changed)

    def write(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """Stores the records that changed.

        Returns the number of added records, and of replaced ones.
        """
        now = time.time()
        stored = _documents(connection, self._identity, self._directory.name, self._records)
        changed = self._changed(connection)
        for key in changed:
            earlier = stored.get(key)
            if earlier is not None:
                _delete(connection, [earlier.seq])
            record = self._records[key]
            insert_whole(
                connection,
                self._identity,
                normalized(record_context(self._directory, record, self._digests[key])),
                self._chunks.get(key) or record_chunks(record),
                now,
                now if earlier is None else earlier.create_time,
            )
        self._write_items(connection, changed, now)
        replaced = sum(key in stored for key in changed)
        return len(changed) - replaced, replaced

    def _changed(self, connection: sqlite3.Connection) -> list[str]:
        """Returns the keys of records that differ from the stored ones, or lack some items."""
        directory = self._directory
        stored = _documents(connection, self._identity, directory.name, self._records)
        items = _count_items(connection, self._identity, directory, self._records)
        return [
            key
            for key, record in self._records.items()
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

    def _write_items(
        self, connection: sqlite3.Connection, changed: Collection[str], now: float
    ) -> None:
        wanted = self._wanted(changed)
        stored = _items_of(connection, self._identity, self._directory, changed)
        stored |= _items_by_id(connection, self._identity, wanted)
        for key, row in stored.items():
            item, owners = wanted.pop(key, (None, set()))
            owners |= _owners(row) - set(changed)
            if item is not None and row.digest != item_digest(item):
                _delete(connection, [row.seq])
                self._insert_item(connection, key, item, owners, (now, row.create_time))
            else:
                _set_owners(connection, row, owners)
        for key, (item, owners) in wanted.items():
            self._insert_item(connection, key, item, owners, (now, now))

    def _insert_item(
        self,
        connection: sqlite3.Connection,
        key: ItemKey,
        item: Item,
        owners: set[str],
        times: tuple[float, float],
    ) -> None:
        new = item_context(key[0], item, owners, item_digest(item))
        chunks = self._item_chunks(key, item)
        insert_whole(connection, self._identity, normalized(new), chunks, *times)

    def _item_chunks(self, key: ItemKey, item: Item) -> list[PreparedChunk]:
        if key not in self._chunks_of_items:
            self._chunks_of_items[key] = item_chunks(item)
        return self._chunks_of_items[key]


def stored_keys(
    connection: sqlite3.Connection, identity: Identity, directory: Directory
) -> list[str]:
    """Returns the keys of the records stored under exactly this identity."""
    owner = exactly(identity, "x")
    rows = connection.execute(
        f"SELECT x.raw_id FROM contexts x WHERE {owner.sql} AND x.raw_type = ?"
        f" AND x.context_type = '{ContextType.DOCUMENT}'",
        (*owner.values, directory.name),
    )
    return [str(row[0]) for row in rows]


def remove_records(
    connection: sqlite3.Connection, identity: Identity, directory: Directory, keys: Collection[str]
) -> int:
    """Removes records and their orphaned items, and returns the number of removed records."""
    records = _documents(connection, identity, directory.name, keys)
    _delete(connection, [row.seq for row in records.values()])
    for row in _items_of(connection, identity, directory, keys).values():
        _set_owners(connection, row, _owners(row) - set(keys))
    return len(records)


def _set_owners(connection: sqlite3.Connection, row: _Row, owners: set[str]) -> None:
    if not owners:
        _delete(connection, [row.seq])
    elif owners != _owners(row):
        connection.execute(
            "UPDATE contexts SET metadata = ? WHERE seq = ?",
            (as_json({**row.metadata, OWNER: sorted(owners)}), row.seq),
        )


def _owners(row: _Row) -> set[str]:
    owners = row.metadata.get(OWNER)
    return set(owners) if isinstance(owners, list) else set()


def _documents(
    connection: sqlite3.Connection, identity: Identity, raw_type: str, raw_ids: Collection[str]
) -> dict[str, _Row]:
    owner = exactly(identity, "x")
    rows = connection.execute(
        "SELECT x.raw_id, x.seq, x.sha256, x.create_time, x.metadata FROM json_each(?) j"
        f" CROSS JOIN contexts x ON {owner.sql} AND x.raw_type = ? AND x.raw_id = j.value"
        f" AND x.context_type = '{ContextType.DOCUMENT}'",
        (json.dumps(list(raw_ids)), *owner.values, raw_type),
    )
    return {row[0]: _Row(row[1], row[2], row[3], json.loads(row[4])) for row in rows}


def _items_by_id(
    connection: sqlite3.Connection, identity: Identity, wanted: Collection[ItemKey]
) -> dict[ItemKey, _Row]:
    found: dict[ItemKey, _Row] = {}
    for raw_type in {key[0] for key in wanted}:
        ids = [key[1] for key in wanted if key[0] == raw_type]
        rows = _documents(connection, identity, raw_type, ids)
        found |= {(raw_type, raw_id): row for raw_id, row in rows.items()}
    return found


def _items_of(
    connection: sqlite3.Connection, identity: Identity, directory: Directory, keys: Collection[str]
) -> dict[ItemKey, _Row]:
    columns = "x.raw_type, x.raw_id, x.seq, x.sha256, x.create_time, x.metadata"
    rows = _owned(connection, identity, directory, keys, columns)
    return {(row[0], row[1]): _Row(row[2], row[3], row[4], json.loads(row[5])) for row in rows}


def _count_items(
    connection: sqlite3.Connection, identity: Identity, directory: Directory, keys: Collection[str]
) -> dict[str, int]:
    rows = _owned(connection, identity, directory, keys, "j.value, count(*)", "GROUP BY j.value")
    return {row[0]: int(row[1]) for row in rows}


def _owned(  # noqa: PLR0913, PLR0917  # the owner, the records and the columns
    connection: sqlite3.Connection,
    identity: Identity,
    directory: Directory,
    keys: Collection[str],
    columns: str,
    grouped: str = "",
) -> sqlite3.Cursor:
    owner = exactly(identity, "x")
    types = directory.raw_types[1:]
    return connection.execute(
        f"SELECT {columns} FROM json_each(?) j CROSS JOIN labels l"
        " ON l.user_id = ? AND l.key = ? AND l.value = j.value"
        f" CROSS JOIN contexts x ON x.seq = l.context_seq AND {owner.sql}"
        f" AND x.raw_type IN ({', '.join('?' * len(types))}) {grouped}",
        (json.dumps(list(keys)), identity.user_id, OWNER, *owner.values, *types),
    )


def _delete(connection: sqlite3.Connection, seqs: Collection[int]) -> None:
    connection.executemany("DELETE FROM contexts WHERE seq = ?", ((seq,) for seq in seqs))

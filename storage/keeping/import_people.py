"""Imports the profiles, entities and relationships of an export."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from storage.keeping.records import EntityRecord, ProfileRecord, RelationshipRecord
from storage.keeping.rows import Outcome, insert_row, update_row
from storage.models import Identity
from storage.people.entities import MAX_ALIASES, entity_of, index_entity
from storage.people.former import restore_former
from storage.people.models import MAX_VALUES, FormerFact
from storage.people.names import fold

Values = dict[str, Any]

_JSON = {"facts", "metadata", "aliases"}


class PeopleImporter:
    """Imports the people data of one export.

    A stored row gets the values it lacks; where both have one, the later change wins. Without an
    identity, each record keeps its owner.
    """

    def __init__(self, identity: Identity | None) -> None:
        self._identity = identity
        self._seqs: dict[int, int] = {}  # of the entities, by their ids in the export

    def add_profile(self, connection: sqlite3.Connection, record: ProfileRecord) -> Outcome:
        """Stores a profile."""
        values = record.model_dump(
            include={"summary", "facts", "metadata", "create_time", "update_time"}
        )
        outcome = _merge(connection, "profiles", self._whose(record), values)
        return self._with_former(connection, record, None, outcome)

    def add_entity(self, connection: sqlite3.Connection, record: EntityRecord) -> Outcome:
        """Stores an entity, under its id if that is free."""
        key = {
            **self._whose(record),
            "folded": fold(record.name),
            "entity_type": record.entity_type,
        }
        values = {
            **record.model_dump(
                include={"summary", "metadata", "importance", "create_time", "update_time"}
            ),
            "aliases": list(record.aliases),
        }
        first = {"seq": _free_seq(connection, record.id), "name": record.name}
        outcome = _merge(connection, "entities", key, values, first)
        row = _find(connection, "entities", key)
        self._seqs[record.id] = row["seq"]
        if outcome != "unchanged":
            index_entity(connection, entity_of(row))
        return self._with_former(connection, record, row["seq"], outcome)

    def add_relationship(
        self, connection: sqlite3.Connection, record: RelationshipRecord
    ) -> Outcome:
        """Stores a relationship between two entities that were imported before it."""
        key = {
            **self._whose(record),
            "source_seq": self._seqs[record.source_id],
            "target_seq": self._seqs[record.target_id],
            "folded": fold(record.relation),
        }
        values = record.model_dump(
            include={"description", "metadata", "create_time", "update_time", "until"}
        )
        return _merge(connection, "relationships", key, values, {"relation": record.relation})

    def _with_former(
        self,
        connection: sqlite3.Connection,
        record: ProfileRecord | EntityRecord,
        seq: int | None,
        outcome: Outcome,
    ) -> Outcome:
        facts = [FormerFact(each.name, each.value, each.until) for each in record.former]
        is_new = restore_former(connection, self._identity or record.identity, seq, facts)
        return "replaced" if is_new and outcome == "unchanged" else outcome

    def _whose(self, record: ProfileRecord | EntityRecord | RelationshipRecord) -> Values:
        return asdict(self._identity or record.identity)


def _merge(
    connection: sqlite3.Connection,
    table: str,
    key: Values,
    values: Values,
    first: Mapping[str, object] = {},
) -> Outcome:
    """Merges values into the row with a key, or into a new one.

    `first` has further columns of a new row.
    """
    row = _find(connection, table, key)
    if row is None:
        insert_row(connection, table, {**first, **key, **_encode(values)})
        return "added"
    stored = {name: json.loads(row[name]) if name in _JSON else row[name] for name in values}
    joined = _join(stored, values)
    if joined == stored:
        return "unchanged"
    update_row(connection, table, _encode(joined), key)
    return "replaced"


def _find(connection: sqlite3.Connection, table: str, key: Values) -> Any:  # noqa: ANN401  # a row, or None
    found = " AND ".join(f"{column} = ?" for column in key)
    return connection.execute(
        f"SELECT * FROM {table} WHERE {found}", tuple(key.values())
    ).fetchone()


def _free_seq(connection: sqlite3.Connection, seq: int) -> int | None:
    taken = connection.execute("SELECT 1 FROM entities WHERE seq = ?", (seq,)).fetchone()
    return None if taken else seq


def _join(stored: Values, values: Values) -> Values:
    """Merges two rows; where both have a value, the later change wins."""
    older, newer = sorted((values, stored), key=lambda each: float(each["update_time"]))
    joined = {name: _both(older[name], newer[name]) for name in newer}
    return {**joined, "create_time": min(stored["create_time"], values["create_time"])}


def _both(older: Any, newer: Any) -> Any:  # noqa: ANN401  # a column's value
    match newer:
        case dict():
            both = {**older, **newer}
            return both if len(json.dumps(both, ensure_ascii=False)) <= MAX_VALUES else newer
        case list():
            spellings: dict[str, str] = {}
            for name in (*newer, *older):
                spellings.setdefault(fold(name), name)
            return list(spellings.values())[:MAX_ALIASES]
        case "":
            return older
        case _:
            return newer


def _encode(values: Values) -> Values:
    return {
        name: json.dumps(value, ensure_ascii=False) if name in _JSON else value
        for name, value in values.items()
    }

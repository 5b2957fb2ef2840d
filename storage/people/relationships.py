"""Stores relationships: directed rows between two entities."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Literal

from storage.database import View, exactly
from storage.people.entities import bare_name
from storage.people.models import (
    Entity,
    EntityPath,
    EntityType,
    NewRelationship,
    Relationship,
    merged_values,
)
from storage.people.name_matching import fold

SINGLE = frozenset(
    fold(relation)
    for relation in (
        *("lives in", "resides in", "is based in", "based in", "is located in", "located in"),
        *("wohnt in", "lebt in", "hat seinen Sitz in", "hat ihren Sitz in"),
        *("住在", "居住在", "位于", "位於"),
    )
)
"""Folded relations of which an entity has only one target at a time."""

_SELECT = (
    "SELECT r.*, s.name AS source, s.entity_type AS source_type, t.name AS target,"
    " t.entity_type AS target_type FROM relationships r"
    " JOIN entities s ON s.seq = r.source_seq JOIN entities t ON t.seq = r.target_seq"
)
_IN = "IN (SELECT value FROM json_each(?))"


def save_relationship(
    view: View, source: Entity, target: Entity, new: NewRelationship
) -> tuple[Relationship, bool]:
    """Merges data into a relationship of this identity; returns it, and whether it is new."""
    now = time.time()
    relation = bare_name(new.relation)
    own = view.own("r")
    key = (source.id, target.id, fold(relation), *own.values)
    found = f"{_SELECT} WHERE r.source_seq = ? AND r.target_seq = ? AND r.folded = ? AND {own.sql}"
    row = view.row(found, key)
    earlier = None if row is None else _relationship(row)
    metadata = merged_values("metadata", earlier.metadata if earlier else {}, new.metadata)
    view.connection.execute(
        "INSERT INTO relationships (source_seq, target_seq, folded, user_id, device_id, agent_id,"
        " relation, description, metadata, create_time, update_time)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET description = coalesce(?, description),"
        " metadata = excluded.metadata, update_time = excluded.update_time, until = NULL",
        (
            *(*key, relation, new.description or "", json.dumps(metadata, ensure_ascii=False)),
            *(now, now, new.description),
        ),
    )
    return _relationship(view.rows(found, key)[0]), earlier is None


def end_others(view: View, kept: Relationship, end: Literal[0, 1]) -> None:
    """Ends the relationships that a new one replaces: same relation, one common end.

    `end` is the one that stays: 0 if the source has a new target, 1 if the target has a new source.
    """
    own = view.own("r")
    column = ("source_seq", "target_seq")[end]
    view.connection.execute(
        f"UPDATE relationships AS r SET until = ? WHERE {own.sql} AND r.{column} = ?"
        " AND r.folded = ? AND r.until IS NULL AND NOT (r.source_seq = ? AND r.target_seq = ?)",
        (time.time(), *own.values, kept.ends[end], fold(kept.relation), *kept.ends),
    )


def delete_relationships(
    view: View, sources: Iterable[int], relation: str, targets: Iterable[int]
) -> int:
    """Deletes a visible relation from any source to any target; returns how many."""
    owner = view.seen("r")
    return view.connection.execute(
        f"DELETE FROM relationships AS r WHERE {owner.sql} AND r.source_seq {_IN}"
        f" AND r.target_seq {_IN} AND r.folded = ?",
        (*owner.values, _json(sources), _json(targets), fold(relation)),
    ).rowcount


def find_relationships(
    view: View,
    ids: Collection[int],
    others: Collection[int] | None = None,
    other_type: EntityType | None = None,
) -> list[Relationship]:
    """Returns relationships of entities in both directions, by relation and names."""
    owner = view.seen("r")
    near, far = ("r.source_seq", "r.target_seq"), ("r.target_seq", "r.source_seq")
    sides, values = [], list[object]()
    for (one, other), kind in zip((near, far), ("t.entity_type", "s.entity_type"), strict=True):
        clauses = [f"{one} {_IN}"]
        values.append(_json(ids))
        if others is not None:
            clauses.append(f"{other} {_IN}")
            values.append(_json(others))
        if other_type is not None:
            clauses.append(f"{kind} = ?")
            values.append(other_type)
        sides.append(" AND ".join(clauses))
    rows = view.rows(
        f"{_SELECT} WHERE {owner.sql} AND ({' OR '.join(sides)})"
        " ORDER BY r.folded, s.folded, t.folded, r.seq",
        (*owner.values, *values),
    )
    return [_relationship(row) for row in rows]


def newest_relationships(
    connection: sqlite3.Connection, entity: Entity, limit: int
) -> list[Relationship]:
    """Returns an entity's newest relationships of exactly its identity, in order of creation."""
    own = exactly(entity.identity, "r")
    rows = connection.execute(
        f"{_SELECT} WHERE {own.sql} AND (r.source_seq = ? OR r.target_seq = ?)"
        " ORDER BY r.update_time DESC, r.seq DESC LIMIT ?",
        (*own.values, entity.id, entity.id, limit),
    ).fetchall()
    return [_relationship(row) for row in sorted(rows, key=lambda row: row["seq"])]


def find_paths(view: View, ones: Collection[int], others: Collection[int]) -> list[EntityPath]:
    """Returns the paths between two entities through a third, by its name."""
    of_ones = _by_neighbour(find_relationships(view, ones), ones)
    of_others = _by_neighbour(find_relationships(view, others), others)
    between = (of_ones.keys() & of_others.keys()) - {*ones, *others}
    paths = [
        EntityPath(
            of_ones[seq][0].source if of_ones[seq][0].ends[0] == seq else of_ones[seq][0].target,
            tuple(of_ones[seq]),
            tuple(of_others[seq]),
        )
        for seq in sorted(between)
    ]
    return sorted(paths, key=lambda path: fold(path.through))


def _by_neighbour(
    relationships: Sequence[Relationship], ids: Collection[int]
) -> dict[int, list[Relationship]]:
    neighbours: dict[int, list[Relationship]] = {}
    for relationship in relationships:
        if relationship.until is not None:
            continue
        source, target = relationship.ends
        neighbours.setdefault(target if source in ids else source, []).append(relationship)
    return neighbours


def _json(ids: Iterable[int]) -> str:
    return json.dumps(list(ids))


def _relationship(row: sqlite3.Row) -> Relationship:
    names = ("source", "relation", "target", "description", "create_time", "update_time", "until")
    return Relationship(
        **{name: row[name] for name in names},
        source_type=EntityType(row["source_type"]),
        target_type=EntityType(row["target_type"]),
        metadata=json.loads(row["metadata"]),
        ends=(row["source_seq"], row["target_seq"]),
    )

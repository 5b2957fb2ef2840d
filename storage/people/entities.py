"""Stores entities by their names and terms, and relationships: directed rows between two."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Literal

from storage.database import View, exactly, identity_of, insert_row, update_row
from storage.errors import AmbiguousNameError, InvalidSourceError
from storage.people.fact_history import keep_former, respelled
from storage.people.models import (
    Entity,
    EntityPath,
    EntityType,
    NewEntity,
    NewRelationship,
    Relationship,
    merged_values,
)
from storage.tokenize import fold, tokenize

MAX_ALIASES = 100  # maximum aliases of an entity

_NAME_WEIGHT = 2
_MIDDLE_IMPORTANCE = 5.0
SINGLE = frozenset(
    fold(relation)
    for relation in (
        *("lives in", "resides in", "is based in", "based in", "is located in", "located in"),
        *("wohnt in", "lebt in", "hat seinen Sitz in", "hat ihren Sitz in"),
        *("住在", "居住在", "位于", "位於"),
    )
)
"""Folded relations of which an entity has only one target at a time."""

MOST_RELATIONSHIPS = 100
"""Maximum relationships on one card, newest first; the other entities' cards have the rest."""

_SELECT = (
    "SELECT r.*, s.name AS source, s.entity_type AS source_type, t.name AS target,"
    " t.entity_type AS target_type FROM relationships r"
    " JOIN entities s ON s.seq = r.source_seq JOIN entities t ON t.seq = r.target_seq"
)
_IN = "IN (SELECT value FROM json_each(?))"


def bare_name(name: str) -> str:
    """Strips needless blanks from a name."""
    bare = " ".join(name.replace("\0", " ").split())  # SQLite's JSON truncates texts at a NUL
    if not bare:
        raise InvalidSourceError("The name is blank.", suggestions=("Provide a name.",))
    return bare


def ambiguous(name: str, entities: Iterable[Entity]) -> AmbiguousNameError:
    """Returns the error for a name that several entities share."""
    several = dict.fromkeys(f"{entity.name} ({entity.entity_type})" for entity in entities)
    return AmbiguousNameError(
        f"{name!r} may be any of {', '.join(several)}.",
        candidates=tuple(several),
        suggestions=("Use the full name, and the type if several share the name.",),
    )


def save_entity(view: View, new: NewEntity) -> tuple[Entity, bool]:
    """Merges data into the entity with that name or alias; returns it, and whether it is new."""
    now, connection = time.time(), view.connection
    name = bare_name(new.name)
    found = _find_stored(view, name, new.entity_type)
    earlier = found or _insert(view, name, new.entity_type or EntityType.OTHER, now)
    metadata = respelled(earlier.metadata, new.metadata)
    keep_former(view, earlier.id, earlier.metadata, metadata)
    metadata = merged_values("metadata", earlier.metadata, metadata)
    changed = {
        "entity_type": new.entity_type or earlier.entity_type,
        "summary": earlier.summary if new.summary is None else new.summary,
        "aliases": json.dumps(_merge_aliases(earlier, new.aliases), ensure_ascii=False),
        "metadata": json.dumps(metadata, ensure_ascii=False),
        "importance": earlier.importance if new.importance is None else new.importance,
        "update_time": now,
    }
    update_row(connection, "entities", changed, {"seq": earlier.id})
    entity = read_entity(connection, earlier.id)
    index_entity(connection, entity)
    return entity, found is None


def delete_entities(connection: sqlite3.Connection, ids: Iterable[int]) -> int:
    """Deletes entities with their names and relationships; returns the number of the latter."""
    given = json.dumps(list(ids))
    within = "IN (SELECT value FROM json_each(?))"
    removed = connection.execute(
        f"DELETE FROM relationships WHERE source_seq {within} OR target_seq {within}",
        (given, given),
    ).rowcount
    connection.execute(f"DELETE FROM entities WHERE seq {within}", (given,))
    return removed


def read_entity(connection: sqlite3.Connection, seq: int) -> Entity:
    """Returns the entity with this seq, which must exist."""
    return entity_of(connection.execute("SELECT * FROM entities WHERE seq = ?", (seq,)).fetchone())


def entity_of(row: sqlite3.Row) -> Entity:
    """Builds the entity of a row of `entities`."""
    return Entity(
        id=row["seq"],
        identity=identity_of(row),
        entity_type=EntityType(row["entity_type"]),
        aliases=tuple(json.loads(row["aliases"])),
        metadata=json.loads(row["metadata"]),
        **{key: row[key] for key in ("name", "summary", "importance")},
        **{key: row[key] for key in ("create_time", "update_time")},
    )


def _find_stored(view: View, name: str, entity_type: EntityType | None) -> Entity | None:
    """Finds the entity of exactly this identity that a saved name refers to."""
    own = view.own("e")
    rows = view.rows(
        "SELECT e.*, n.is_alias FROM entity_names n JOIN entities e ON e.seq = n.entity_seq"
        f" WHERE n.user_id = ? AND n.folded = ? AND {own.sql} ORDER BY e.entity_type",
        (view.user_id, fold(name), *own.values),
    )
    named = [entity_of(row) for row in rows if not row["is_alias"]]
    also_named = [entity_of(row) for row in rows if row["is_alias"]]
    if entity_type is None:
        if len(named) > 1:
            raise ambiguous(name, named)
        return _only(named) or _only(also_named)
    return (
        _only(_of_type(named, entity_type))
        or _only(_of_type(also_named, entity_type))
        or _only(_of_type(named, EntityType.OTHER))
    )


def _of_type(entities: Iterable[Entity], entity_type: EntityType) -> list[Entity]:
    return [entity for entity in entities if entity.entity_type is entity_type]


def _only(entities: Sequence[Entity]) -> Entity | None:
    return entities[0] if len(entities) == 1 else None


def _insert(view: View, name: str, entity_type: EntityType, now: float) -> Entity:
    row = {"folded": fold(name), "entity_type": entity_type, "name": name, "summary": ""}
    row |= {"aliases": "[]", "metadata": "{}"}
    numbers = {"importance": _MIDDLE_IMPORTANCE, "create_time": now, "update_time": now}
    seq = insert_row(view.connection, "entities", view.owner | row | numbers)
    return read_entity(view.connection, seq)


def _merge_aliases(entity: Entity, given: Iterable[str]) -> list[str]:
    """Merges aliases without duplicates and without the name itself, as first written."""
    spellings = {fold(entity.name): entity.name}
    for alias in (*entity.aliases, *map(bare_name, given)):
        spellings.setdefault(fold(alias), alias)
    aliases = list(spellings.values())[1:]
    if len(aliases) > MAX_ALIASES:
        raise InvalidSourceError(
            f"{entity.name!r} would have {len(aliases)} aliases; at most {MAX_ALIASES} are stored.",
            suggestions=("Leave out those that differ only by a typo: they are found anyway.",),
        )
    return aliases


def index_entity(connection: sqlite3.Connection, entity: Entity) -> None:
    """Updates the names and terms by which an entity is found."""
    for table in ("entity_names", "entity_terms"):
        connection.execute(f"DELETE FROM {table} WHERE entity_seq = ?", (entity.id,))
    user_id = entity.identity.user_id
    connection.executemany(
        "INSERT INTO entity_names (user_id, folded, entity_seq, spelling, is_alias)"
        " VALUES (?, ?, ?, ?, ?)",
        (
            (user_id, fold(spelling), entity.id, spelling, spelling != entity.name)
            for spelling in (entity.name, *entity.aliases)
        ),
    )
    weights: Counter[str] = Counter()
    for term in tokenize("\n".join((entity.name, *entity.aliases))):
        weights[term] += _NAME_WEIGHT
    weights.update(tokenize("\n".join((entity.summary, *_texts(entity.metadata)))))
    connection.executemany(
        "INSERT INTO entity_terms (user_id, term, entity_seq, weight) VALUES (?, ?, ?, ?)",
        ((user_id, term, entity.id, weight) for term, weight in weights.items()),
    )


def _texts(value: Any) -> Iterator[str]:  # noqa: ANN401  # any JSON value
    """Yields the texts in a JSON value, and the keys of its objects."""
    match value:
        case dict():
            for key, part in value.items():
                yield key
                yield from _texts(part)
        case list():
            for part in value:
                yield from _texts(part)
        case None | bool():
            return
        case _:
            yield str(value)


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


def newest_relationships(connection: sqlite3.Connection, entity: Entity) -> list[Relationship]:
    """Returns an entity's newest relationships of exactly its identity, in order of creation."""
    own = exactly(entity.identity, "r")
    rows = connection.execute(
        f"{_SELECT} WHERE {own.sql} AND (r.source_seq = ? OR r.target_seq = ?)"
        " ORDER BY r.update_time DESC, r.seq DESC LIMIT ?",
        (*own.values, entity.id, entity.id, MOST_RELATIONSHIPS),
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

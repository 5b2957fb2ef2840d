"""Stores entities: their rows, and the names and terms by which they are found."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from storage.database import View, identity_of, insert_row, update_row
from storage.errors import AmbiguousNameError, InvalidSourceError
from storage.people.fact_history import keep_former, respelled
from storage.people.models import Entity, EntityType, NewEntity, merged_values
from storage.people.name_matching import fold
from storage.tokenize import tokenize

MAX_ALIASES = 100  # maximum aliases of an entity

_NAME_WEIGHT = 2
_MIDDLE_IMPORTANCE = 5.0


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

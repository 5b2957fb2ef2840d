"""Stores entities: their rows, and the names and terms by which they are found."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from storage.database import Where, exactly, identity_clause
from storage.errors import AmbiguousNameError, InvalidSourceError
from storage.models import Identity
from storage.people.former import keep_former, respelled
from storage.people.models import Entity, EntityMatch, EntityType, How, NewEntity, merged_values
from storage.people.names import fold
from storage.tokenize import tokenize

MAX_ALIASES = 100
"""Maximum aliases of an entity."""

_NAME_WEIGHT = 2
_MIDDLE_IMPORTANCE = 5.0


def visible(identity: Identity, entity_type: EntityType | None = None) -> Where:
    """Returns the condition on `entities AS e` for those an identity sees, optionally of a type."""
    owner = identity_clause(identity, "e")
    if entity_type is None:
        return owner
    return Where(f"{owner.sql} AND e.entity_type = ?", (*owner.values, entity_type))


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


def save_entity(
    connection: sqlite3.Connection, identity: Identity, new: NewEntity
) -> tuple[Entity, bool]:
    """Merges new data into an entity stored under exactly this identity, or adds it.

    A stored entity matches by its name, or if it alone has that alias. One of type `other` takes
    the given type. Returns the stored entity, and whether it is new.
    """
    now = time.time()
    name = bare_name(new.name)
    earlier = _find_stored(connection, identity, name, new.entity_type)
    if earlier is None:
        seq = _insert(connection, identity, name, new.entity_type or EntityType.OTHER, now)
        earlier = entity_of(_row(connection, seq))
        created = True
    else:
        created = False
    metadata = respelled(earlier.metadata, new.metadata)
    keep_former(connection, identity, earlier.id, earlier.metadata, metadata)
    connection.execute(
        "UPDATE entities SET entity_type = ?, summary = ?, aliases = ?, metadata = ?,"
        " importance = ?, update_time = ? WHERE seq = ?",
        (
            new.entity_type or earlier.entity_type,
            earlier.summary if new.summary is None else new.summary,
            json.dumps(_merge_aliases(earlier, new.aliases), ensure_ascii=False),
            json.dumps(merged_values("metadata", earlier.metadata, metadata), ensure_ascii=False),
            earlier.importance if new.importance is None else new.importance,
            now,
            earlier.id,
        ),
    )
    entity = entity_of(_row(connection, earlier.id))
    index_entity(connection, entity)
    return entity, created


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


def sure_matches(
    connection: sqlite3.Connection, where: Where, user_id: str, name: str
) -> list[EntityMatch]:
    """Returns the entities with this folded name: own names first, then aliases."""
    rows = connection.execute(
        "SELECT e.*, n.spelling, n.is_alias FROM entity_names n"
        " JOIN entities e ON e.seq = n.entity_seq"
        f" WHERE n.user_id = ? AND n.folded = ? AND {where.sql}"
        " ORDER BY n.is_alias, e.folded, e.entity_type, e.seq",
        (user_id, fold(name), *where.values),
    )
    return [EntityMatch(entity_of(row), 1.0, _way(name, row), row["spelling"]) for row in rows]


def folded_names(connection: sqlite3.Connection, where: Where) -> list[str]:
    """Returns the distinct folded names and aliases of the entities under a condition."""
    rows = connection.execute(
        "SELECT DISTINCT n.folded FROM entities e JOIN entity_names n ON n.entity_seq = e.seq"
        f" WHERE {where.sql}",
        where.values,
    )
    return [str(row[0]) for row in rows]


def matches_of(
    connection: sqlite3.Connection, where: Where, user_id: str, folded: Sequence[str]
) -> dict[str, list[tuple[Entity, str]]]:
    """Returns the entities with these folded names, each with its spelling."""
    rows = connection.execute(
        "SELECT e.*, n.spelling, n.folded AS found FROM entity_names n"
        " JOIN entities e ON e.seq = n.entity_seq"
        f" WHERE n.user_id = ? AND n.folded IN (SELECT value FROM json_each(?)) AND {where.sql}",
        (user_id, json.dumps(list(folded)), *where.values),
    )
    owners: dict[str, list[tuple[Entity, str]]] = {}
    for row in rows:
        owners.setdefault(row["found"], []).append((entity_of(row), row["spelling"]))
    return owners


def entity_of(row: sqlite3.Row) -> Entity:
    """Builds the entity of a row of `entities`."""
    return Entity(
        id=row["seq"],
        identity=Identity(row["user_id"], row["device_id"], row["agent_id"]),
        name=row["name"],
        entity_type=EntityType(row["entity_type"]),
        summary=row["summary"],
        aliases=tuple(json.loads(row["aliases"])),
        metadata=json.loads(row["metadata"]),
        importance=row["importance"],
        create_time=row["create_time"],
        update_time=row["update_time"],
    )


def _way(name: str, row: sqlite3.Row) -> How:
    if row["spelling"] != name:
        return "folded"
    return "alias" if row["is_alias"] else "exact"


def _row(connection: sqlite3.Connection, seq: int) -> sqlite3.Row:
    row: sqlite3.Row = connection.execute("SELECT * FROM entities WHERE seq = ?", (seq,)).fetchone()
    return row


def _find_stored(
    connection: sqlite3.Connection,
    identity: Identity,
    name: str,
    entity_type: EntityType | None,
) -> Entity | None:
    """Finds the entity of exactly this identity that a saved name refers to."""
    own = exactly(identity, "e")
    rows = connection.execute(
        "SELECT e.*, n.is_alias FROM entity_names n JOIN entities e ON e.seq = n.entity_seq"
        f" WHERE n.user_id = ? AND n.folded = ? AND {own.sql} ORDER BY e.entity_type",
        (identity.user_id, fold(name), *own.values),
    ).fetchall()
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


def _insert(
    connection: sqlite3.Connection,
    identity: Identity,
    name: str,
    entity_type: EntityType,
    now: float,
) -> int:
    cursor = connection.execute(
        "INSERT INTO entities (user_id, device_id, agent_id, folded, entity_type, name, summary,"
        " aliases, metadata, importance, create_time, update_time)"
        " VALUES (?, ?, ?, ?, ?, ?, '', '[]', '{}', ?, ?, ?)",
        (
            *exactly(identity, "e").values,
            fold(name),
            entity_type,
            name,
            _MIDDLE_IMPORTANCE,
            now,
            now,
        ),
    )
    return int(cursor.lastrowid or 0)


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

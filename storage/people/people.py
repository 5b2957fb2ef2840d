"""The repository of people: the user's profile, named entities, and relationships."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from storage.database import Database, Where
from storage.errors import EntityNotFoundError, InvalidSourceError, RelationshipNotFoundError
from storage.models import Identity
from storage.people import cards, entities, mentions, profiles, relationships
from storage.people.entitysearch import find_entities, near_entities, search_entities
from storage.people.former import former_facts
from storage.people.likeness import likely
from storage.people.models import (
    Entity,
    EntityMatch,
    EntityPath,
    EntityType,
    FormerFact,
    NewEntity,
    NewRelationship,
    Profile,
    Relationship,
)
from storage.people.names import fold

MAX_SPELLINGS = 100
"""Maximum names that one name may match in a filter."""

_SUGGESTED = 3
_NO_VALUES: Mapping[str, Any] = {}


class People:
    """The profile, entities and relationships of one identity; its methods block.

    Reads see one user's data, of any device or agent if the identity names none. Writes go under
    exactly this identity. `notify` is called when cards wait for embedding.
    """

    def __init__(
        self, database: Database, identity: Identity, notify: Callable[[], None] = lambda: None
    ) -> None:
        self._database = database
        self._identity = identity
        self._notify = notify

    def profile(self) -> Profile | None:
        """Returns the user's profile, or None."""
        with self._database.read() as connection:
            return profiles.find_profile(connection, self._identity)

    def save_profile(
        self,
        *,
        summary: str | None = None,
        facts: Mapping[str, Any] = _NO_VALUES,
        metadata: Mapping[str, Any] = _NO_VALUES,
    ) -> tuple[Profile, bool]:
        """Merges new data into the user's profile.

        A summary of None keeps the stored one; a fact or a value of None removes that key. Returns
        the stored profile, and whether it is new.
        """
        with self._write() as connection:
            return profiles.save_profile(
                connection, self._identity, summary=summary, facts=facts, metadata=metadata
            )

    def former(self, whose: Profile | Entity) -> list[FormerFact]:
        """Returns the former facts of the user or an entity, latest first."""
        entity = whose.id if isinstance(whose, Entity) else None
        with self._database.read() as connection:
            return former_facts(connection, whose.identity, entity)

    def save_entity(self, new: NewEntity) -> tuple[Entity, bool]:
        """Merges new data into a stored entity, or adds it.

        The stored entity is the one with that name, regardless of case and accents, else the only
        one with that alias. One of type `other` takes the given type. Returns the stored entity,
        and whether it is new.
        """
        with self._write() as connection:
            return entities.save_entity(connection, self._identity, new)

    def delete_entity(self, name: str, entity_type: EntityType | None = None) -> tuple[Entity, int]:
        """Deletes an entity with its names and relationships.

        If the identity sees several of that name and type, from several devices or agents, all are
        deleted: a deleted entity must not be found again. Returns the entity, and the number of
        deleted relationships.
        """
        with self._write() as connection:
            same = _of_one_type(name, self._require_named(connection, name, entity_type))
            removed = entities.delete_entities(connection, [each.id for each in same])
            cards.refresh(connection, cards.AT_ONCE + 2 * removed)  # also those of related entities
        return same[0], removed

    def find(
        self, name: str, entity_type: EntityType | None = None, limit: int = 10
    ) -> list[EntityMatch]:
        """Returns the entities that a name matches, best first, by the most certain method."""
        with self._database.read() as connection:
            return find_entities(connection, *self._whose(entity_type), name)[:limit]

    def unknown(self, name: str, entity_type: EntityType | None = None) -> EntityNotFoundError:
        """Returns the error for a name that no entity has, with the nearest names."""
        with self._database.read() as connection:
            return self._unknown(connection, name, entity_type)

    def similar(
        self, name: str, entity_type: EntityType | None = None, limit: int = 10
    ) -> list[EntityMatch]:
        """Returns entities with similar names, best first, including unlikely ones."""
        with self._database.read() as connection:
            return near_entities(connection, *self._whose(entity_type), name)[:limit]

    def search(
        self, query: str, entity_type: EntityType | None = None, top_k: int = 10
    ) -> list[EntityMatch]:
        """Returns entities that match a query by name, alias, summary or metadata, best first."""
        with self._database.read() as connection:
            return search_entities(connection, *self._whose(entity_type), query)[:top_k]

    def listed(
        self, entity_type: EntityType | None = None, *, limit: int, offset: int = 0
    ) -> list[Entity]:
        """Returns entities ordered by name."""
        where, _ = self._whose(entity_type)
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT e.* FROM entities e WHERE {where.sql}"
                " ORDER BY e.folded, e.entity_type, e.seq LIMIT ? OFFSET ?",
                (*where.values, limit, offset),
            ).fetchall()
        return [entities.entity_of(row) for row in rows]

    def count(self, entity_type: EntityType | None = None) -> int:
        """Returns the number of entities."""
        where, _ = self._whose(entity_type)
        with self._database.read() as connection:
            row = connection.execute(
                f"SELECT count(*) FROM entities e WHERE {where.sql}", where.values
            ).fetchone()
        return int(row[0])

    def relate(
        self, new: NewRelationship, *, create_missing: bool = False
    ) -> tuple[Relationship, bool, tuple[str, ...]]:
        """Merges new data into a relationship between two entities, or adds it.

        With `create_missing`, missing ends are created, with the given type or `other`. Returns the
        stored relationship, whether it is new, and the names of the created ends.
        """
        made: list[str] = []
        with self._write() as connection:
            ends = []
            for name, kind in ((new.source, new.source_type), (new.target, new.target_type)):
                if create_missing and not self._find_named(connection, name, kind):
                    missing = NewEntity(name=name, entity_type=kind)
                    entity, is_new = entities.save_entity(connection, self._identity, missing)
                    made += [entity.name] if is_new else []
                ends.append(_of_one_type(name, self._require_named(connection, name, kind))[0])
            if ends[0].id == ends[1].id:
                raise InvalidSourceError(
                    f"{new.source!r} and {new.target!r} are both {ends[0].name!r}.",
                    suggestions=("Name two different entities.",),
                )
            saved, created = relationships.save_relationship(
                connection, self._identity, ends[0], ends[1], new
            )
            if new.replaces == "target" or fold(new.relation) in relationships.SINGLE:
                relationships.end_others(connection, self._identity, saved, 0)
            if new.replaces == "source":
                relationships.end_others(connection, self._identity, saved, 1)
        return saved, created, tuple(made)

    def unrelate(self, source: str, relation: str, target: str) -> int:
        """Deletes a relationship and returns the number of rows, possibly of several devices."""
        with self._write() as connection:
            sources = [entity.id for entity in self._require_named(connection, source)]
            targets = [entity.id for entity in self._require_named(connection, target)]
            removed = relationships.delete_relationships(
                connection, self._identity, sources, relation, targets
            )
            if not removed:
                there = relationships.find_relationships(
                    connection, self._identity, sources, targets
                )
                existing = [f"{each.source} {each.relation} {each.target}" for each in there]
                raise RelationshipNotFoundError(
                    f"{source!r} has no relationship {relation!r} to {target!r}.",
                    candidates=existing[:_SUGGESTED],
                    suggestions=("List them with check_entity_relationships.",),
                )
        return removed

    def relationships_of(
        self, name: str, other: str | None = None, other_type: EntityType | None = None
    ) -> tuple[list[Entity], list[Entity], list[Relationship]]:
        """Returns the relationships of an entity in both directions, with all others or one.

        Names may have any spelling. Returns the entities that each matches (possibly of several
        types or devices), and their relationships by relation and names.
        """
        with self._database.read() as connection:
            ones = self._require_match(connection, name, None)
            others = [] if other is None else self._require_match(connection, other, other_type)
            found = relationships.find_relationships(
                connection,
                self._identity,
                [one.id for one in ones],
                None if other is None else [each.id for each in others],
                other_type,
            )
        return ones, others, found

    def paths(self, ones: Sequence[Entity], others: Sequence[Entity]) -> list[EntityPath]:
        """Returns the paths between two entities through a third, by its name."""
        with self._database.read() as connection:
            return relationships.find_paths(
                connection,
                self._identity,
                {one.id for one in ones},
                {other.id for other in others},
            )

    def spellings(
        self, name: str, is_said: Callable[[Sequence[str]], bool] = lambda _names: False
    ) -> tuple[str, ...]:
        """Returns the folded names that a name in any spelling may have in contexts.

        Those are all names of the matching entity, or else the matching mentioned names; at most
        `MAX_SPELLINGS`, and none if nothing resembles it. `is_said` returns whether a text mentions
        one of an entity's names.
        """
        asked = fold(name)
        where, user_id = self._whose(None)
        with self._database.read() as connection:
            names = _folded_names(self._find_named(connection, name, None))
            if (names and is_said(names)) or any(
                self._is_mentioned(connection, each) for each in (asked, *names)
            ):
                return tuple(names or [asked])
            known = dict.fromkeys(mentions.mentioned_names(connection, self._identity))
            if not names:
                known |= dict.fromkeys(entities.folded_names(connection, where))
            found = [each.folded for each in likely(asked, known)]
            owners = entities.matches_of(connection, where, user_id, found)
        meant = [entity for folded in found for entity, _ in owners.get(folded, ())]
        return tuple(dict.fromkeys([*names, *found, *_folded_names(meant)]))[:MAX_SPELLINGS]

    def names_of(self, name: str) -> tuple[str, ...]:
        """Returns all folded names of the entities that certainly have a name."""
        with self._database.read() as connection:
            return tuple(dict.fromkeys(_folded_names(self._find_named(connection, name, None))))

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """Opens a write that also refreshes the cards, all in one transaction."""
        with self._database.write() as connection:
            yield connection
            cards.refresh(connection)
        self._notify()

    def _whose(self, entity_type: EntityType | None) -> tuple[Where, str]:
        return entities.visible(self._identity, entity_type), self._identity.user_id

    def _is_mentioned(self, connection: sqlite3.Connection, folded: str) -> bool:
        return mentions.is_mentioned(connection, self._identity, folded)

    def _find_named(
        self, connection: sqlite3.Connection, name: str, entity_type: EntityType | None
    ) -> list[Entity]:
        """Returns the entities with a name, or else those with it as an alias."""
        sure = entities.sure_matches(connection, *self._whose(entity_type), name)
        asked = fold(name)
        named = [match.entity for match in sure if fold(match.entity.name) == asked]
        return named or [match.entity for match in sure]

    def _require_named(
        self, connection: sqlite3.Connection, name: str, entity_type: EntityType | None = None
    ) -> list[Entity]:
        """Returns the entities with a name, the identity's own first; raises if ambiguous."""
        found = self._find_named(connection, name, entity_type)
        return self._of_one_name(connection, name, entity_type, found)

    def _require_match(
        self, connection: sqlite3.Connection, name: str, entity_type: EntityType | None
    ) -> list[Entity]:
        """Returns the entities that a name in any spelling matches; raises if it is ambiguous."""
        matches = find_entities(connection, *self._whose(entity_type), name)
        return self._of_one_name(connection, name, entity_type, [match.entity for match in matches])

    def _of_one_name(
        self,
        connection: sqlite3.Connection,
        name: str,
        entity_type: EntityType | None,
        found: Sequence[Entity],
    ) -> list[Entity]:
        if not found:
            raise self._unknown(connection, name, entity_type)
        if len({fold(entity.name) for entity in found}) > 1:
            raise entities.ambiguous(name, found)
        return sorted(found, key=lambda entity: entity.identity != self._identity)

    def _unknown(
        self, connection: sqlite3.Connection, name: str, entity_type: EntityType | None
    ) -> EntityNotFoundError:
        near = near_entities(connection, *self._whose(entity_type), name)[:_SUGGESTED]
        return EntityNotFoundError(
            f"No {entity_type or 'entity'} named {name!r} is stored for user"
            f" {self._identity.user_id!r}.",
            candidates=tuple(dict.fromkeys(match.entity.name for match in near)),
            suggestions=("Search with search_entities, or save it with save_entity.",),
        )


def _of_one_type(name: str, found: Sequence[Entity]) -> Sequence[Entity]:
    if len({entity.entity_type for entity in found}) > 1:
        raise entities.ambiguous(name, found)
    return found


def _folded_names(found: Iterable[Entity]) -> list[str]:
    return [fold(name) for entity in found for name in (entity.name, *entity.aliases)]

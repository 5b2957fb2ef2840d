"""The repository of people: the user's profile, entities with their names, and relationships."""

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
"""Names that one name may stand for in a filter."""

_SUGGESTED = 3
_NO_VALUES: Mapping[str, Any] = {}


class People:
    """Profile, entities and relationships of one identity; its calls block.

    Reads see what the identity may see: one user's, of any device or agent where it names none.
    Writes go under this very identity.

    Args:
        database: The record.
        identity: Whose.
        notify: Told that there are cards to be embedded.
    """

    def __init__(
        self, database: Database, identity: Identity, notify: Callable[[], None] = lambda: None
    ) -> None:
        self._database = database
        self._identity = identity
        self._notify = notify

    def profile(self) -> Profile | None:
        """What is known of the user, or None."""
        with self._database.read() as connection:
            return profiles.find_profile(connection, self._identity)

    def save_profile(
        self,
        *,
        summary: str | None = None,
        facts: Mapping[str, Any] = _NO_VALUES,
        metadata: Mapping[str, Any] = _NO_VALUES,
    ) -> tuple[Profile, bool]:
        """Merges what is said of the user into the profile.

        Args:
            summary: Who the user is; None keeps what is stored.
            facts: What is known, by name; a value of None removes one.
            metadata: Free data of the caller's, merged in the same way.

        Returns:
            The profile as stored, and whether it is new.
        """
        with self._changing() as connection:
            return profiles.save_profile(
                connection, self._identity, summary=summary, facts=facts, metadata=metadata
            )

    def former(self, whose: Profile | Entity) -> list[FormerFact]:
        """What was known of the user or of an entity before, the latest first."""
        entity = whose.id if isinstance(whose, Entity) else None
        with self._database.read() as connection:
            return former_facts(connection, whose.identity, entity)

    def save_entity(self, new: NewEntity) -> tuple[Entity, bool]:
        """Merges what is said of an entity into what is stored of it.

        The stored entity is the one with that name in any case and accents, else the only one with
        that alias; one of type `other` takes the type that is given.

        Returns:
            The entity as stored, and whether it is new.
        """
        with self._changing() as connection:
            return entities.save_entity(connection, self._identity, new)

    def delete_entity(self, name: str, entity_type: EntityType | None = None) -> tuple[Entity, int]:
        """Deletes an entity with its names and relationships.

        Where the identity sees several of that name and type, of several devices or agents, all
        go: what was deleted is not found again.

        Returns:
            The entity, and how many relationships went with it.
        """
        with self._changing() as connection:
            same = _of_one_type(name, self._named(connection, name, entity_type))
            removed = entities.delete_entities(connection, [each.id for each in same])
            cards.refresh(connection, cards.AT_ONCE + 2 * removed)  # none tells of it any more
        return same[0], removed

    def find(
        self, name: str, entity_type: EntityType | None = None, limit: int = 10
    ) -> list[EntityMatch]:
        """The entities that a name means, best first; the surest way that finds any decides."""
        with self._database.read() as connection:
            return find_entities(connection, *self._whose(entity_type), name)[:limit]

    def unknown(self, name: str, entity_type: EntityType | None = None) -> EntityNotFoundError:
        """What is to be raised where no entity has a name: an error with the nearest names."""
        with self._database.read() as connection:
            return self._unknown(connection, name, entity_type)

    def similar(
        self, name: str, entity_type: EntityType | None = None, limit: int = 10
    ) -> list[EntityMatch]:
        """Entities with a name like the one given, best first, also those hardly meant."""
        with self._database.read() as connection:
            return near_entities(connection, *self._whose(entity_type), name)[:limit]

    def search(
        self, query: str, entity_type: EntityType | None = None, top_k: int = 10
    ) -> list[EntityMatch]:
        """Entities that fit a query by name, alias, summary or metadata, best first."""
        with self._database.read() as connection:
            return search_entities(connection, *self._whose(entity_type), query)[:top_k]

    def listed(
        self, entity_type: EntityType | None = None, *, limit: int, offset: int = 0
    ) -> list[Entity]:
        """Entities in the order of their names."""
        where, _ = self._whose(entity_type)
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT e.* FROM entities e WHERE {where.sql}"
                " ORDER BY e.folded, e.entity_type, e.seq LIMIT ? OFFSET ?",
                (*where.values, limit, offset),
            ).fetchall()
        return [entities.entity_of(row) for row in rows]

    def count(self, entity_type: EntityType | None = None) -> int:
        """How many entities there are."""
        where, _ = self._whose(entity_type)
        with self._database.read() as connection:
            row = connection.execute(
                f"SELECT count(*) FROM entities e WHERE {where.sql}", where.values
            ).fetchone()
        return int(row[0])

    def relate(
        self, new: NewRelationship, *, create_missing: bool = False
    ) -> tuple[Relationship, bool, tuple[str, ...]]:
        """Merges what is said of two entities into what is stored.

        Args:
            new: What is said.
            create_missing: Whether ends that are not stored are made, with the type that is given
                or `other`.

        Returns:
            The relationship as stored, whether it is new, and the names of the ends made for it.
        """
        made: list[str] = []
        with self._changing() as connection:
            ends = []
            for name, kind in ((new.source, new.source_type), (new.target, new.target_type)):
                if create_missing and not self._having(connection, name, kind):
                    missing = NewEntity(name=name, entity_type=kind)
                    entity, is_new = entities.save_entity(connection, self._identity, missing)
                    made += [entity.name] if is_new else []
                ends.append(_of_one_type(name, self._named(connection, name, kind))[0])
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
        """Deletes a relationship and says how many rows went, of several devices perhaps.

        Raises:
            RelationshipNotFoundError: If the source is not related to the target like that.
        """
        with self._changing() as connection:
            sources = [entity.id for entity in self._named(connection, source)]
            targets = [entity.id for entity in self._named(connection, target)]
            removed = relationships.delete_relationships(
                connection, self._identity, sources, relation, targets
            )
            if not removed:
                there = relationships.find_relationships(
                    connection, self._identity, sources, targets
                )
                told = [f"{each.source} {each.relation} {each.target}" for each in there]
                raise RelationshipNotFoundError(
                    f"{source!r} has no relationship {relation!r} to {target!r}.",
                    candidates=told[:_SUGGESTED],
                    suggestions=("Look at them with check_entity_relationships.",),
                )
        return removed

    def relationships_of(
        self, name: str, other: str | None = None, other_type: EntityType | None = None
    ) -> tuple[list[Entity], list[Entity], list[Relationship]]:
        """The relationships of an entity in either direction, of all or of one other.

        Args:
            name: The entity, in any spelling.
            other: Only with this one, in any spelling.
            other_type: Only with entities of this type.

        Returns:
            The entities that the names mean (of several types or devices, perhaps), and their
            relationships by relation and names.
        """
        with self._database.read() as connection:
            ones = self._meant(connection, name, None)
            others = [] if other is None else self._meant(connection, other, other_type)
            found = relationships.find_relationships(
                connection,
                self._identity,
                [one.id for one in ones],
                None if other is None else [each.id for each in others],
                other_type,
            )
        return ones, others, found

    def paths(self, ones: Sequence[Entity], others: Sequence[Entity]) -> list[EntityPath]:
        """How two entities are related through a third, by its name."""
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
        """The folded names that a name in any spelling may stand for where contexts mention names.

        Those are all names of the entity that it means, or the mentioned names that it means; at
        most `MAX_SPELLINGS`, and none where nothing is like it.

        Args:
            name: The name.
            is_said: Whether a text says one of the names of an entity.
        """
        asked = fold(name)
        where, user_id = self._whose(None)
        with self._database.read() as connection:
            names = _folded_names(self._having(connection, name, None))
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
        """All names, folded, of the entities that surely have a name; none where none has it."""
        with self._database.read() as connection:
            return tuple(dict.fromkeys(_folded_names(self._having(connection, name, None))))

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """A write after which the cards say what is stored, or none of it happened."""
        with self._database.write() as connection:
            yield connection
            cards.refresh(connection)
        self._notify()

    def _whose(self, entity_type: EntityType | None) -> tuple[Where, str]:
        return entities.visible(self._identity, entity_type), self._identity.user_id

    def _is_mentioned(self, connection: sqlite3.Connection, folded: str) -> bool:
        return mentions.is_mentioned(connection, self._identity, folded)

    def _having(
        self, connection: sqlite3.Connection, name: str, entity_type: EntityType | None
    ) -> list[Entity]:
        """The entities that surely have a name, or where there are none, that alias."""
        sure = entities.sure_matches(connection, *self._whose(entity_type), name)
        asked = fold(name)
        named = [match.entity for match in sure if fold(match.entity.name) == asked]
        return named or [match.entity for match in sure]

    def _named(
        self, connection: sqlite3.Connection, name: str, entity_type: EntityType | None = None
    ) -> list[Entity]:
        """The entities that surely have a name, which is one name, this very identity's first."""
        found = self._having(connection, name, entity_type)
        return self._of_one_name(connection, name, entity_type, found)

    def _meant(
        self, connection: sqlite3.Connection, name: str, entity_type: EntityType | None
    ) -> list[Entity]:
        """The entities that a name in any spelling means, which have one name."""
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
            suggestions=("Look for it with search_entities, or save it with save_entity.",),
        )


def _of_one_type(name: str, found: Sequence[Entity]) -> Sequence[Entity]:
    if len({entity.entity_type for entity in found}) > 1:
        raise entities.ambiguous(name, found)
    return found


def _folded_names(found: Iterable[Entity]) -> list[str]:
    return [fold(name) for entity in found for name in (entity.name, *entity.aliases)]

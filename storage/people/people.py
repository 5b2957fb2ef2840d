"""The repository of people: the user's profile, named entities, and relationships."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from storage.database import Database, View
from storage.errors import EntityNotFoundError, InvalidSourceError, RelationshipNotFoundError
from storage.models import Identity
from storage.people import cards, entities
from storage.people.entitysearch import EntitySearch
from storage.people.fact_history import find_profile, former_facts, save_profile
from storage.people.mentions_index import is_mentioned, mentioned_names
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
from storage.people.name_matching import likely
from storage.tokenize import fold

MAX_SPELLINGS = 100  # maximum names that one name may match in a filter

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
        with self._read() as view:
            return find_profile(view)

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
        with self._write() as view:
            return save_profile(view, summary=summary, facts=facts, metadata=metadata)

    def former(self, whose: Profile | Entity) -> list[FormerFact]:
        """Returns the former facts of the user or an entity, latest first."""
        entity = whose.id if isinstance(whose, Entity) else None
        with self._database.read() as connection:
            return former_facts(View(connection, whose.identity), entity)

    def related(self, entity: Entity) -> list[Relationship]:
        """Returns the relationships on an entity's card, with those that ended."""
        with self._database.read() as connection:
            return entities.newest_relationships(connection, entity)

    def save_entity(self, new: NewEntity) -> tuple[Entity, bool]:
        """Merges new data into a stored entity, or adds it.

        The stored entity is the one with that name, regardless of case and accents, else the only
        one with that alias. One of type `other` takes the given type. Returns the stored entity,
        and whether it is new.
        """
        with self._write() as view:
            return entities.save_entity(view, new)

    def delete_entity(self, name: str, entity_type: EntityType | None = None) -> tuple[Entity, int]:
        """Deletes an entity with its names and relationships.

        If the identity sees several of that name and type, from several devices or agents, all are
        deleted: a deleted entity must not be found again. Returns the entity, and the number of
        deleted relationships.
        """
        with self._write() as view:
            same = _of_one_type(name, _require_named(EntitySearch(view, entity_type), name))
            removed = entities.delete_entities(view.connection, [each.id for each in same])
            # Also those of related entities.
            cards.refresh(view.connection, cards.AT_ONCE + 2 * removed)
        return same[0], removed

    def find(
        self, name: str, entity_type: EntityType | None = None, limit: int = 10
    ) -> list[EntityMatch]:
        """Returns the entities that a name matches, best first, by the most certain method."""
        with self._read() as view:
            return EntitySearch(view, entity_type).find(name)[:limit]

    def unknown(self, name: str, entity_type: EntityType | None = None) -> EntityNotFoundError:
        """Returns the error for a name that no entity has, with the nearest names."""
        with self._read() as view:
            return _unknown(EntitySearch(view, entity_type), name)

    def similar(
        self, name: str, entity_type: EntityType | None = None, limit: int = 10
    ) -> list[EntityMatch]:
        """Returns entities with similar names, best first, including unlikely ones."""
        with self._read() as view:
            return EntitySearch(view, entity_type).near(name)[:limit]

    def search(
        self, query: str, entity_type: EntityType | None = None, top_k: int = 10
    ) -> list[EntityMatch]:
        """Returns entities that match a query by name, alias, summary or metadata, best first."""
        with self._read() as view:
            return EntitySearch(view, entity_type).search(query)[:top_k]

    def listed(
        self, entity_type: EntityType | None = None, *, limit: int, offset: int = 0
    ) -> list[Entity]:
        """Returns entities ordered by name."""
        with self._read() as view:
            return EntitySearch(view, entity_type).listed(limit, offset)

    def count(self, entity_type: EntityType | None = None) -> int:
        """Returns the number of entities."""
        with self._read() as view:
            return EntitySearch(view, entity_type).count()

    def relate(
        self, new: NewRelationship, *, create_missing: bool = False
    ) -> tuple[Relationship, bool, tuple[str, ...]]:
        """Merges new data into a relationship between two entities, or adds it.

        With `create_missing`, missing ends are created, with the given type or `other`. Returns the
        stored relationship, whether it is new, and the names of the created ends.
        """
        made: list[str] = []
        with self._write() as view:
            ends = []
            for name, kind in ((new.source, new.source_type), (new.target, new.target_type)):
                search = EntitySearch(view, kind)
                if create_missing and not search.named(name):
                    entity, is_new = entities.save_entity(
                        view, NewEntity(name=name, entity_type=kind)
                    )
                    made += [entity.name] if is_new else []
                ends.append(_of_one_type(name, _require_named(search, name))[0])
            if ends[0].id == ends[1].id:
                raise InvalidSourceError(
                    f"{new.source!r} and {new.target!r} are both {ends[0].name!r}.",
                    suggestions=("Name two different entities.",),
                )
            saved, created = entities.save_relationship(view, ends[0], ends[1], new)
            if new.replaces == "target" or fold(new.relation) in entities.SINGLE:
                entities.end_others(view, saved, 0)
            if new.replaces == "source":
                entities.end_others(view, saved, 1)
        return saved, created, tuple(made)

    def unrelate(self, source: str, relation: str, target: str) -> int:
        """Deletes a relationship and returns the number of rows, possibly of several devices."""
        with self._write() as view:
            search = EntitySearch(view)
            sources = [entity.id for entity in _require_named(search, source)]
            targets = [entity.id for entity in _require_named(search, target)]
            removed = entities.delete_relationships(view, sources, relation, targets)
            if not removed:
                there = entities.find_relationships(view, sources, targets)
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
        with self._read() as view:
            ones = _require_match(EntitySearch(view), name)
            others = [] if other is None else _require_match(EntitySearch(view, other_type), other)
            found = entities.find_relationships(
                view,
                [one.id for one in ones],
                None if other is None else [each.id for each in others],
                other_type,
            )
        return ones, others, found

    def paths(self, ones: Sequence[Entity], others: Sequence[Entity]) -> list[EntityPath]:
        """Returns the paths between two entities through a third, by its name."""
        with self._read() as view:
            return entities.find_paths(
                view, {one.id for one in ones}, {other.id for other in others}
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
        with self._read() as view:
            search = EntitySearch(view)
            names = _folded_names(search.named(name))
            if (names and is_said(names)) or any(
                is_mentioned(view, each) for each in (asked, *names)
            ):
                return tuple(names or [asked])
            known = dict.fromkeys(mentioned_names(view))
            if not names:
                known |= dict.fromkeys(search.folded_names())
            found = [each.folded for each in likely(asked, known)]
            owners = search.owners(found)
        meant = [entity for folded in found for entity, _ in owners.get(folded, ())]
        return tuple(dict.fromkeys([*names, *found, *_folded_names(meant)]))[:MAX_SPELLINGS]

    def names_of(self, name: str) -> tuple[str, ...]:
        """Returns all folded names of the entities that certainly have a name."""
        with self._read() as view:
            return tuple(dict.fromkeys(_folded_names(EntitySearch(view).named(name))))

    @contextmanager
    def _read(self) -> Iterator[View]:
        with self._database.read() as connection:
            yield View(connection, self._identity)

    @contextmanager
    def _write(self) -> Iterator[View]:
        """Opens a write that also refreshes the cards, all in one transaction."""
        with self._database.write() as connection:
            yield View(connection, self._identity)
            cards.refresh(connection)
        self._notify()


def _require_named(search: EntitySearch, name: str) -> list[Entity]:
    """Returns the entities with a name, the identity's own first; raises if ambiguous."""
    return _of_one_name(search, name, search.named(name))


def _require_match(search: EntitySearch, name: str) -> list[Entity]:
    """Returns the entities that a name in any spelling matches; raises if it is ambiguous."""
    return _of_one_name(search, name, [match.entity for match in search.find(name)])


def _of_one_name(search: EntitySearch, name: str, found: Sequence[Entity]) -> list[Entity]:
    if not found:
        raise _unknown(search, name)
    if len({fold(entity.name) for entity in found}) > 1:
        raise entities.ambiguous(name, found)
    return sorted(found, key=lambda entity: entity.identity != search.view.identity)


def _unknown(search: EntitySearch, name: str) -> EntityNotFoundError:
    near = search.near(name)[:_SUGGESTED]
    return EntityNotFoundError(
        f"No {search.entity_type or 'entity'} named {name!r} is stored for user"
        f" {search.view.user_id!r}.",
        candidates=tuple(dict.fromkeys(match.entity.name for match in near)),
        suggestions=("Search with search_entities, or save it with save_entity.",),
    )


def _of_one_type(name: str, found: Sequence[Entity]) -> Sequence[Entity]:
    if len({entity.entity_type for entity in found}) > 1:
        raise entities.ambiguous(name, found)
    return found


def _folded_names(found: Iterable[Entity]) -> list[str]:
    return [fold(name) for entity in found for name in (entity.name, *entity.aliases)]

"""Routing: decides which part of the stored data to search, and defines named sources.

A query is narrowed automatically only if its words are certain: "what did you just run" is about
this session, "according to the docs" about stored documents. If the narrowed search finds nothing,
everything is searched. An explicit scope is always obeyed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from storage.contexts.labels import is_labelled
from storage.models import Context, ContextType, SearchFilter
from storage.retrieval.routing_cues import (
    asks_what_was_last,
    knowledge_cue,
    memory_cue,
    tells_of_failures,
)

# Reasons for a route that are not worth showing.
AS_ASKED = "as asked"
UNSAID = "nothing in the question says where"
MEMORY = "memory"  # the origin of memories and of entries

# The origins of contexts outside named sources.
ORIGINS = {
    ContextType.DOCUMENT: "documents",
    ContextType.KNOWLEDGE: "knowledge",
    ContextType.EVENT: "events",
    ContextType.PROFILE: "people",
    ContextType.ENTITY: "people",
}

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A named part of the stored data that a query can be limited to; by default all of it."""

    name: str  # its name in a query, `[a-z0-9_-]{1,64}`
    description: str = ""  # what it contains
    search_hints: tuple[str, ...] = ()  # topics to search it for
    supported_filters: tuple[str, ...] = ()  # metadata keys that queries may filter by
    context_types: tuple[ContextType, ...] = ()  # only contexts of these types
    raw_types: tuple[str, ...] = ()  # only contexts of these types of source
    under: str = ""  # only contexts whose raw_id has this prefix, such as "guides/" for a folder
    # Only contexts with one of the values under each metadata key, in the form of
    # `storage.contexts.labels.label_of`.
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def criteria(self) -> SearchFilter:
        """The filter of its contexts; memories are in no source."""
        return SearchFilter(
            context_types=self.context_types,
            raw_types=self.raw_types,
            under=self.under,
            labels=tuple(self.labels.items()),
            memory=False,
        )

    def holds(self, context: Context) -> bool:
        """Returns whether a context matches `criteria`."""
        return (
            not context.memory_layer
            and not context.context_type.is_card
            and (not self.context_types or context.context_type in self.context_types)
            and (not self.raw_types or context.raw_type in self.raw_types)
            and context.raw_id.startswith(self.under)
            and all(is_labelled(context.metadata, *label) for label in self.labels.items())
        )

    def narrowed(self, criteria: SearchFilter) -> SearchFilter | None:
        """Returns the combination with another filter; None if nothing can match."""
        types = _common(self.context_types, criteria.context_types)
        raw_types = _common(self.raw_types, criteria.raw_types)
        under = max(self.under, criteria.under, key=len)
        is_apart = not (under.startswith(self.under) and under.startswith(criteria.under))
        if (
            types is None
            or raw_types is None
            or is_apart
            or criteria.memory
            or criteria.memory_layers
        ):
            return None
        return replace(
            criteria,
            context_types=types,
            raw_types=raw_types,
            under=under,
            labels=(*self.criteria.labels, *criteria.labels),
            memory=False,
        )


def _common(own: tuple[ValueT, ...], other: tuple[ValueT, ...]) -> tuple[ValueT, ...] | None:
    """Intersects two lists, where an empty one means all; None if the intersection is empty."""
    if not own or not other:
        return own or other
    return tuple(value for value in other if value in own) or None


def origin_of(context: Context, sources: Sequence[Source]) -> str:
    """Returns the origin of a context: memory, the first source that contains it, or its type."""
    if context.memory_layer:
        return MEMORY
    named = (source.name for source in sources if source.holds(context))
    return next(named, ORIGINS[context.context_type])


class Scope(StrEnum):
    """The part of the stored data to search."""

    AUTO = "auto"
    MEMORY = "memory"
    KNOWLEDGE = "knowledge"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnifiedQuery:
    """A query over memory and knowledge."""

    text: str  # what to look for
    top_k: int  # maximum number of hits
    scope: Scope = Scope.AUTO
    intent: str = ""  # the purpose, such as "recall"; it helps to choose the scope
    source: Source | None = None  # the only source to search; None means all
    sources: tuple[Source, ...] = ()  # all sources, to determine the origins of hits
    layers: tuple[int, ...] = ()  # only memories of these layers; empty means any
    # The filter; entities may be spelled in any way.
    criteria: SearchFilter = field(default_factory=SearchFilter)
    session_id: str = ""


_MEMORY_INTENTS = frozenset({"recall", "remember", "memory"})
_KNOWLEDGE_INTENTS = frozenset({"documentation", "knowledge"})


@dataclass(frozen=True, slots=True)
class Route:
    """A routing decision."""

    scope: Scope  # memory, knowledge or all
    why: str  # the reason, in a few words
    stored: SearchFilter | None  # the filter for stored contexts; None if they are not searched
    recent: bool  # whether to search layer 1
    # Whether the query's words decided; if nothing is found, the search is widened.
    is_guess: bool = False
    # Whether layer 1 was asked for; else it counts only if nothing else is found.
    asks_recent: bool = False
    # Whether failed calls are asked for; otherwise they are left out if others match.
    failures: bool = False
    latest: bool = False  # whether the latest events are asked for, whatever their topic

    def widened(self, criteria: SearchFilter) -> Route:
        """Returns the route that searches everything, after this one found nothing."""
        why = f"{self.why}, which has nothing"
        everything = replace(criteria, cards=True)
        return Route(Scope.ALL, why, everything, recent=_fits_entries(criteria))


def route(query: UnifiedQuery) -> Route:
    """Decides where to search for the answer to a query."""
    scope, why, is_guess = _scope(query)
    criteria, recent = query.criteria, _fits_entries(query.criteria)
    failures = tells_of_failures(query.text)
    match scope:
        case Scope.MEMORY:
            layers = tuple(layer for layer in query.layers if layer > 1)
            only_recent = bool(query.layers) and not layers
            memories = replace(criteria, memory=True, memory_layers=layers, cards=not layers)
            recent = recent and (not query.layers or 1 in query.layers)
            latest = recent and is_guess and asks_what_was_last(query.text)
            return Route(
                scope,
                why,
                None if only_recent or latest else memories,
                recent,
                is_guess,
                asks_recent=True,
                failures=failures,
                latest=latest,
            )
        case Scope.KNOWLEDGE:
            source = query.source
            known = replace(criteria, memory=False, cards=True)
            stored = source.narrowed(criteria) if source else known
            return Route(scope, why, stored, recent=False, is_guess=is_guess)
        case _:
            return Route(scope, why, replace(criteria, cards=True), recent, failures=failures)


def _scope(query: UnifiedQuery) -> tuple[Scope, str, bool]:
    """Returns the scope, the reason, and whether that is a guess."""
    if query.scope in {Scope.MEMORY, Scope.KNOWLEDGE}:
        return query.scope, AS_ASKED, False
    if query.layers:
        named = ", ".join(f"l{layer}" for layer in query.layers)
        return Scope.MEMORY, f"{named} is a layer of memory", False
    if query.source is not None:
        return Scope.KNOWLEDGE, f"{query.source.name} is a source", False
    if query.scope is Scope.ALL:
        return Scope.ALL, AS_ASKED, False
    if query.criteria.labels:
        return Scope.KNOWLEDGE, "filtered by metadata", False
    return _guess(query.text, query.intent.strip().casefold())


def _guess(text: str, intent: str) -> tuple[Scope, str, bool]:
    memory, knowledge = memory_cue(text), knowledge_cue(text)
    if memory and not knowledge:
        return Scope.MEMORY, f"{memory!r} asks for memory", True
    if knowledge and not memory:
        return Scope.KNOWLEDGE, f"{knowledge!r} asks for knowledge", True
    if not memory and intent in _MEMORY_INTENTS:
        return Scope.MEMORY, f"intent {intent!r} asks for memory", True
    if not knowledge and intent in _KNOWLEDGE_INTENTS:
        return Scope.KNOWLEDGE, f"intent {intent!r} asks for knowledge", True
    return Scope.ALL, UNSAID, False


def _fits_entries(criteria: SearchFilter) -> bool:
    """Returns whether entries, which only have a time, can match a filter."""
    return replace(criteria, time_range=None) == SearchFilter()

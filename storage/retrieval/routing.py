"""Routing: which part of what is stored a query is about, and the sources that it can name.

A query is narrowed by itself only where its words are sure: "what did you just run" is about this
session, "according to the docs" about what is stored. Where the narrowed search finds nothing,
everything is searched. What the caller says is obeyed.
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

AS_ASKED = "as asked"
UNSAID = "nothing in the question says where"
"""Reasons for a route that are not worth showing."""

MEMORY = "memory"
"""The origin of memories and of entries."""

ORIGINS = {
    ContextType.DOCUMENT: "documents",
    ContextType.KNOWLEDGE: "knowledge",
    ContextType.EVENT: "events",
    ContextType.PROFILE: "people",
    ContextType.ENTITY: "people",
}
"""The origins of what is in no named source."""

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A named part of what is stored, which a query can be limited to; by default all of it.

    Attributes:
        name: Its name in a query, `[a-z0-9_-]{1,64}`.
        description: What is in it.
        search_hints: What it is good to be asked about.
        supported_filters: Keys of the metadata that queries may filter it by.
        context_types: Only contexts of these kinds.
        raw_types: Only contexts of these kinds of source.
        under: Only contexts whose raw_id begins with this, such as "guides/" for a folder.
        labels: Only contexts with one of the values under each key of their metadata, as
            `storage.contexts.labels.label_of` writes them.
    """

    name: str
    description: str = ""
    search_hints: tuple[str, ...] = ()
    supported_filters: tuple[str, ...] = ()
    context_types: tuple[ContextType, ...] = ()
    raw_types: tuple[str, ...] = ()
    under: str = ""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def criteria(self) -> SearchFilter:
        """The filter that its contexts fit; memories are in no source."""
        return SearchFilter(
            context_types=self.context_types,
            raw_types=self.raw_types,
            under=self.under,
            labels=tuple(self.labels.items()),
            memory=False,
        )

    def holds(self, context: Context) -> bool:
        """Returns whether a context fits `criteria`."""
        return (
            not context.memory_layer
            and not context.context_type.is_card
            and (not self.context_types or context.context_type in self.context_types)
            and (not self.raw_types or context.raw_type in self.raw_types)
            and context.raw_id.startswith(self.under)
            and all(is_labelled(context.metadata, *label) for label in self.labels.items())
        )

    def narrowed(self, criteria: SearchFilter) -> SearchFilter | None:
        """Returns the filter of what is in it and fits another one; None where nothing can."""
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
    """The values of both lists, of which an empty one means all; None if there is none."""
    if not own or not other:
        return own or other
    return tuple(value for value in other if value in own) or None


def origin_of(context: Context, sources: Sequence[Source]) -> str:
    """Returns where a context comes from: memory, the first source that it is in, or its kind."""
    if context.memory_layer:
        return MEMORY
    named = (source.name for source in sources if source.holds(context))
    return next(named, ORIGINS[context.context_type])


class Scope(StrEnum):
    """Where to look for an answer."""

    AUTO = "auto"
    MEMORY = "memory"
    KNOWLEDGE = "knowledge"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnifiedQuery:
    """A query over memory and knowledge.

    Attributes:
        text: What to look for.
        top_k: How many hits at most.
        scope: Where to look.
        intent: What it is asked for, such as "recall"; it helps to choose where to look.
        source: The only source to search; None means every one.
        sources: All sources, for the origins of hits.
        layers: Only memories of these layers; empty means of any.
        criteria: What narrows it further; entities are names in any spelling.
        session_id: The session that asks.
    """

    text: str
    top_k: int
    scope: Scope = Scope.AUTO
    intent: str = ""
    source: Source | None = None
    sources: tuple[Source, ...] = ()
    layers: tuple[int, ...] = ()
    criteria: SearchFilter = field(default_factory=SearchFilter)
    session_id: str = ""


_MEMORY_INTENTS = frozenset({"recall", "remember", "memory"})
_KNOWLEDGE_INTENTS = frozenset({"documentation", "knowledge"})


@dataclass(frozen=True, slots=True)
class Route:
    """Where to look.

    Attributes:
        scope: Memory, knowledge or all.
        why: Why, in a few words.
        stored: What narrows the search of stored context; None where none is searched.
        recent: Whether layer 1 is searched.
        asks_recent: Whether it is asked for; else it counts only where nothing else is found.
        failures: Whether failed calls are asked for; else they are left out beside others.
        latest: Whether what happened last is asked for, whatever it was about.
        is_guess: Whether the words of the query decided: what finds nothing is widened.
    """

    scope: Scope
    why: str
    stored: SearchFilter | None
    recent: bool
    is_guess: bool = False
    asks_recent: bool = False
    failures: bool = False
    latest: bool = False

    def widened(self, criteria: SearchFilter) -> Route:
        """Returns the route to everything, after this one found nothing."""
        why = f"{self.why}, which has nothing"
        everything = replace(criteria, cards=True)
        return Route(Scope.ALL, why, everything, recent=_fits_entries(criteria))


def route(query: UnifiedQuery) -> Route:
    """Returns where to look for the answer to a query."""
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
    """Where, why, and whether that is a guess."""
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
    return _guessed(query.text, query.intent.strip().casefold())


def _guessed(text: str, intent: str) -> tuple[Scope, str, bool]:
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
    """Whether entries, which have nothing but a time, can fit a filter."""
    return replace(criteria, time_range=None) == SearchFilter()

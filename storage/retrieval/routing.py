"""Routing: which part of what is stored a query is about, and the sources that it can name.

A query is narrowed by itself only where its words are sure: "what did you just run" is about this
session, "according to the docs" about what is stored. Where the narrowed search finds nothing,
everything is searched. What the caller says is obeyed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from storage.contexts.labels import is_labelled
from storage.models import Context, ContextType, SearchFilter

__all__ = [
    "AS_ASKED",
    "MEMORY",
    "ORIGINS",
    "UNSAID",
    "Route",
    "Scope",
    "Source",
    "UnifiedQuery",
    "origin_of",
    "route",
]

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

# Words of a question that surely say where its answer is, in English, German and Chinese.
_TALK = r"(?:session|conversation|chat)"
_THIS = r"(?:this|our|my last|our last|the (?:current|last|previous))"
_DID = r"(?:done|did|ran|called|said|told|asked|changed|wrote|used)"
_DO = rf"(?:do|run|call|say|tell|ask|change|write|use|{_DID})"
_OTHERS = r"(?! (?:of|between|with|app)\b)"
"""After what is called a session or a talk: of a court, between others."""

_ENGLISH_MEMORY = (
    rf"(?:in|during|of|since) {_THIS} {_TALK}{_OTHERS}",
    rf"(?:last|previous|earlier) {_TALK}{_OTHERS}",
    rf"(?:you|we|i) (?:have )?just {_DID}",
    rf"(?:did|have) (?:you|we|i) (?:just|already) {_DO}",
    r"last time (?:you|we|i)",
    r"(?:you|we|i) (?:[\w\']+ ){1,6}(?:last time|just now|a moment ago|a minute ago)",
    r"(?:did|have) i (?:ever |already )?(?:tell|told|ask(?:ed)?) you",
    r"(?:did|have) i (?:ever |already )?(?:mention(?:ed)?|sa(?:y|id)) (?:\w+ ){0,4}to you",
    r"i (?:have )?(?:already )?told you(?! so\b)",
    r"(?:do|can) you (?:still )?(?:remember|recall)",
    r"remember when (?:you|we|i)",
    r"what do you (?:know|remember) about me",
    r"(?:your|my) (?:last|previous) (?:tool )?(?:call|command|message|question)s?",
    rf"which (?:tools?|commands?) (?:did|have) (?:you|we|i) (?:just |already )?{_DO}",
)
_GERMAN_OTHERS = r"(?! (?:der|des|von|vom|zwischen|mit)\b)"
_GERMAN_MEMORY = (
    rf"(?:in|w\u00e4hrend) (?:dieser|unserer|der letzten) (?:sitzung|unterhaltung){_GERMAN_OTHERS}",
    rf"(?:in|w\u00e4hrend) (?:diesem|unserem|dem letzten) (?:chat|gespr\u00e4ch){_GERMAN_OTHERS}",
    rf"(?:im|beim) letzten (?:chat|gespr\u00e4ch){_GERMAN_OTHERS}",
    r"(?:hast du|haben wir|habe ich) (?:\w+ ){0,5}(?:eben|gerade|vorhin)",
    r"(?:beim letzten mal|letztes mal)",
    r"habe? ich dir (?:\w+ ){0,4}(?:gesagt|erz\u00e4hlt)",
    r"(?:wei\u00dft du noch|erinnerst du dich)",
)
_CHINESE_MEMORY = (
    r"[刚剛][才刚剛]",
    r"上一?次(?:你|我(?!国)|咱)",
    r"(?:你|我|我们|咱们?)上一?次",
    r"(?:这次|本次|当前|上次|上一次|这个|上个|前一次)的?(?:会话|对话|聊天)(?!软件|机器人|室|工具|应用)",
    r"你还?记得",
    r"我(?:有没有|是不是|是否|之前)?(?:告诉过?你|跟你说|和你说)",
)
_DOCUMENTS = r"(?:docs?|documents?|documentation|manual|handbook|wiki|knowledge base)"
_ENGLISH_KNOWLEDGE = (
    rf"(?:according to|in|from) (?:the|our|my) (?:\w+ )?{_DOCUMENTS}(?! (?:folder|directory)\b)",
    rf"what (?:do|does) (?:the|our|my) (?:\w+ )?{_DOCUMENTS}",
)
_GERMAN_KNOWLEDGE = (
    r"(?:laut|gem\u00e4\u00df) (?:der |dem |des )?(?:dokumentation|handbuchs?|anleitung|wiki)",
    r"in (?:der|unserer) (?:dokumentation|anleitung)",
    r"im (?:handbuch|wiki)",
    r"was sag(?:t|en) (?:der|die|das|unsere?) (?:dokumentation|handbuch|anleitung|wiki)",
)
_CHINESE_KNOWLEDGE = (
    r"(?:根据|按照|依据)\w{0,8}(?:文档|手册|资料|知识库)",
    r"(?:文档|手册|资料|知识库)[里中上]",
)


def _any(spaced: tuple[str, ...], spaceless: tuple[str, ...]) -> str:
    return rf"(?i)\b(?:{'|'.join(spaced)})\b|{'|'.join(spaceless)}"


# Strings, which `re` compiles and caches on first use: a start needs none of them.
_MEMORY = _any((*_ENGLISH_MEMORY, *_GERMAN_MEMORY), _CHINESE_MEMORY)
_KNOWLEDGE = _any((*_ENGLISH_KNOWLEDGE, *_GERMAN_KNOWLEDGE), _CHINESE_KNOWLEDGE)


@dataclass(frozen=True, slots=True)
class Route:
    """Where to look.

    Attributes:
        scope: Memory, knowledge or all.
        why: Why, in a few words.
        stored: What narrows the search of stored context; None where none is searched.
        recent: Whether layer 1 is searched.
        is_guess: Whether the words of the query decided: what finds nothing is widened.
    """

    scope: Scope
    why: str
    stored: SearchFilter | None
    recent: bool
    is_guess: bool = False

    def widened(self, criteria: SearchFilter) -> Route:
        """Returns the route to everything, after this one found nothing."""
        why = f"{self.why}, which has nothing"
        everything = replace(criteria, cards=True)
        return Route(Scope.ALL, why, everything, recent=_fits_entries(criteria))


def route(query: UnifiedQuery) -> Route:
    """Returns where to look for the answer to a query."""
    scope, why, is_guess = _scope(query)
    criteria, recent = query.criteria, _fits_entries(query.criteria)
    match scope:
        case Scope.MEMORY:
            layers = tuple(layer for layer in query.layers if layer > 1)
            only_recent = bool(query.layers) and not layers
            memories = replace(criteria, memory=True, memory_layers=layers, cards=not layers)
            recent = recent and (not query.layers or 1 in query.layers)
            return Route(scope, why, None if only_recent else memories, recent, is_guess)
        case Scope.KNOWLEDGE:
            source = query.source
            known = replace(criteria, memory=False, cards=True)
            stored = source.narrowed(criteria) if source else known
            return Route(scope, why, stored, recent=False, is_guess=is_guess)
        case _:
            return Route(scope, why, replace(criteria, cards=True), recent)


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
    memory, knowledge = _cue(_MEMORY, text), _cue(_KNOWLEDGE, text)
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


def _cue(pattern: str, text: str) -> str:
    """The words that match; empty where none do."""
    found = re.search(pattern, " ".join(text.split()))
    return found[0] if found else ""

"""Routing: which part of what is stored a question is about.

A question is narrowed by itself only where its words are sure: "what did you just run" is about
this session, "according to the docs" about what is stored. Where the narrowed search finds nothing,
everything is searched. What the caller says is obeyed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from storage.models import SearchFilter
from storage.retrieval import cues
from storage.retrieval.inquiry import AS_ASKED, UNSAID, Inquiry, Scope

__all__ = ["Route", "route"]

"""Why everything is searched, where that needs no telling."""

_MEMORY_INTENTS = frozenset({"recall", "remember", "memory"})
_KNOWLEDGE_INTENTS = frozenset({"documentation", "knowledge"})


@dataclass(frozen=True, slots=True)
class Route:
    """Where a question is looked for.

    Attributes:
        scope: Memory, knowledge or all.
        why: Why, in a few words.
        stored: What narrows the search of stored context; None where none is asked.
        recent: Whether layer 1 is asked.
        is_guess: Whether the words of the question decided: what finds nothing is widened.
    """

    scope: Scope
    why: str
    stored: SearchFilter | None
    recent: bool
    is_guess: bool = False

    def widened(self, wanted: SearchFilter) -> Route:
        """The same question to everything, after nothing was found."""
        why = f"{self.why}, which has nothing"
        return Route(Scope.ALL, why, wanted, recent=_fits_entries(wanted))


def route(inquiry: Inquiry) -> Route:
    """Where to look for the answer of a question."""
    scope, why, is_guess = _scope(inquiry)
    wanted, recent = inquiry.wanted, _fits_entries(inquiry.wanted)
    match scope:
        case Scope.MEMORY:
            layers = tuple(layer for layer in inquiry.layers if layer > 1)
            only_recent = bool(inquiry.layers) and not layers
            memories = replace(wanted, memory=True, memory_layers=layers)
            recent = recent and (not inquiry.layers or 1 in inquiry.layers)
            return Route(scope, why, None if only_recent else memories, recent, is_guess)
        case Scope.KNOWLEDGE:
            source = inquiry.source
            stored = source.narrowed(wanted) if source else replace(wanted, memory=False)
            return Route(scope, why, stored, recent=False, is_guess=is_guess)
        case _:
            return Route(scope, why, wanted, recent)


def _scope(inquiry: Inquiry) -> tuple[Scope, str, bool]:
    """Where, why, and whether that is a guess."""
    if inquiry.scope in {Scope.MEMORY, Scope.KNOWLEDGE}:
        return inquiry.scope, AS_ASKED, False
    if inquiry.layers:
        named = ", ".join(f"l{layer}" for layer in inquiry.layers)
        return Scope.MEMORY, f"{named} is a layer of memory", False
    if inquiry.source is not None:
        return Scope.KNOWLEDGE, f"{inquiry.source.name} is a source", False
    if inquiry.scope is Scope.ALL:
        return Scope.ALL, AS_ASKED, False
    if inquiry.wanted.labels:
        return Scope.KNOWLEDGE, "filtered by metadata", False
    return _guessed(inquiry.query, inquiry.intent.strip().casefold())


def _guessed(query: str, intent: str) -> tuple[Scope, str, bool]:
    memory, knowledge = cues.of_memory(query), cues.of_knowledge(query)
    if memory and not knowledge:
        return Scope.MEMORY, f"{memory!r} asks for memory", True
    if knowledge and not memory:
        return Scope.KNOWLEDGE, f"{knowledge!r} asks for knowledge", True
    if not memory and intent in _MEMORY_INTENTS:
        return Scope.MEMORY, f"intent {intent!r} asks for memory", True
    if not knowledge and intent in _KNOWLEDGE_INTENTS:
        return Scope.KNOWLEDGE, f"intent {intent!r} asks for knowledge", True
    return Scope.ALL, UNSAID, False


def _fits_entries(wanted: SearchFilter) -> bool:
    """Whether entries, which have nothing but a time, can fit a filter."""
    return replace(wanted, time_range=None) == SearchFilter()

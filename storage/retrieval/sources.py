"""Sources: named parts of what is stored, which a question can be put to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from storage.contexts.labels import is_labelled
from storage.models import Context, ContextType, SearchFilter

__all__ = ["MEMORY", "ORIGINS", "Source", "origin_of"]

MEMORY = "memory"
"""The origin of memories, and of entries."""

ORIGINS = {
    ContextType.DOCUMENT: "documents",
    ContextType.KNOWLEDGE: "knowledge",
    ContextType.EVENT: "events",
}
"""Of what is in no named source."""

ValueT = TypeVar("ValueT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A named part of what is stored; what it does not narrow, it has all of.

    Attributes:
        name: What it is called in a question, `[a-z0-9_-]{1,64}`.
        description: What is in it.
        search_hints: What it is good to be asked for.
        supported_filters: Keys of the metadata that questions to it may filter by.
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
    def wanted(self) -> SearchFilter:
        """The filter that lets through what is in it; memories are in no source."""
        return SearchFilter(
            context_types=self.context_types,
            raw_types=self.raw_types,
            under=self.under,
            labels=tuple(self.labels.items()),
            memory=False,
        )

    def holds(self, context: Context) -> bool:
        """Whether a context is in it, as `wanted` would tell."""
        return (
            not context.memory_layer
            and (not self.context_types or context.context_type in self.context_types)
            and (not self.raw_types or context.raw_type in self.raw_types)
            and context.raw_id.startswith(self.under)
            and all(is_labelled(context.metadata, *label) for label in self.labels.items())
        )

    def narrowed(self, wanted: SearchFilter) -> SearchFilter | None:
        """The filter that lets through what is in it and fits another one.

        Returns:
            None where nothing can be both.
        """
        types = _common(self.context_types, wanted.context_types)
        raw_types = _common(self.raw_types, wanted.raw_types)
        under = max(self.under, wanted.under, key=len)
        is_apart = not (under.startswith(self.under) and under.startswith(wanted.under))
        if types is None or raw_types is None or is_apart or wanted.memory or wanted.memory_layers:
            return None
        return replace(
            wanted,
            context_types=types,
            raw_types=raw_types,
            under=under,
            labels=(*self.wanted.labels, *wanted.labels),
            memory=False,
        )


def _common(own: tuple[ValueT, ...], wanted: tuple[ValueT, ...]) -> tuple[ValueT, ...] | None:
    """What both lists name, of which an empty one names all; None if there is nothing."""
    if not own or not wanted:
        return own or wanted
    return tuple(value for value in wanted if value in own) or None


def origin_of(context: Context, sources: Sequence[Source]) -> str:
    """Where a context comes from: memory, the first source that it is in, or its kind."""
    if context.memory_layer:
        return MEMORY
    named = (source.name for source in sources if source.holds(context))
    return next(named, ORIGINS[context.context_type])

"""Sources: named parts of what is stored, which a question can be put to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from storage.models import Context, ContextType, SearchFilter

__all__ = ["Source"]


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
        under: Only sources whose name begins with this, such as the folder they come from.
        labels: Only contexts with one of the values under each key of their metadata.
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
        raise NotImplementedError

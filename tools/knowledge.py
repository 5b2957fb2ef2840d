"""Knowledge: stores what is worth knowing, and finds it together with events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Unpack

from pydantic import Field, FiniteFloat

from storage.library import Shelf
from storage.models import ContextType, NewContext, SearchFilter, SearchHit, SearchResult, Stored
from storage.retrieval.query_signals import asks_for_past
from tools.answers.hits import Retrieved
from tools.answers.params import (
    Content,
    Grade,
    Instant,
    Metadata,
    Names,
    RawId,
    RawType,
    TimeWindow,
    TopK,
    instant,
)
from tools.core.context import IdentityArguments, RequestContext
from tools.core.result import OmitNone, ToolModel
from tools.core.spec import Effect, ToolScope, tool

MOST_HITS = 100
"""Limit on the chunks found, before the chunks of one context are merged into one hit."""

WANTED = SearchFilter(context_types=(ContextType.KNOWLEDGE, ContextType.EVENT), levels=(0,))
"""Knowledge and events, without summaries: those belong to `retrieve_event_context`."""


class AddedKnowledge(ToolModel):
    """The result of adding knowledge.

    Attributes:
        id: The knowledge item that now holds it.
        outcome: "added", "merged", or "superseded" if it replaced another value.
        merge_count: How often near duplicates were merged into it.
        similarity: Similarity to the merged item; absent if not merged.
        former: Its former text, kept as past; absent if nothing was superseded.
    """

    id: str
    outcome: str
    merge_count: int
    similarity: OmitNone[FiniteFloat]
    former: OmitNone[str] = None

    @classmethod
    def of(cls, stored: Stored) -> AddedKnowledge:
        """Converts a storage result."""
        near = stored.similarity
        return cls.from_attributes(
            stored,
            id=stored.context.id,
            merge_count=stored.context.merge_count,
            similarity=None if near is None else round(near, 4),
            former=stored.former or None,
        )

    def to_text(self) -> str:
        """Formats it as one line for the model."""
        if self.outcome == "merged":
            return (
                f"Merged into knowledge {self.id}, which said nearly the same (similarity"
                f" {self.similarity}); merged {self.merge_count} times so far."
            )
        if self.former:
            return f"Now said by knowledge {self.id}; kept as past: {self.former}"
        return f"Added knowledge {self.id}."


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.WRITE},
    tags=("context", "knowledge"),
    capabilities=("keep a fact, a preference or a decision so that it can be found again",),
)
def add_knowledge(
    context: RequestContext,
    content: Annotated[Content, Field(description="What is to be known")],
    title: Annotated[str, Field(max_length=512, description="In a few words")] = "",
    summary: Annotated[str, Field(max_length=2_000, description="In short")] = "",
    keywords: Annotated[Names | None, Field(description="What it is about")] = None,
    entities: Annotated[Names | None, Field(description="Names it is about")] = None,
    confidence: Annotated[Grade, Field(description="How sure it is, 0 to 10")] = 5.0,
    importance: Annotated[Grade, Field(description="How much it matters, 0 to 10")] = 5.0,
    event_time: Annotated[
        Instant | None, Field(description="Its date, Unix seconds or ISO 8601; default: now")
    ] = None,
    metadata: Annotated[Metadata | None, Field(description="Anything to keep with it")] = None,
    raw_type: RawType | None = None,
    raw_id: RawId | None = None,
    **identity: Unpack[IdentityArguments],
) -> AddedKnowledge:
    """Stores a piece of knowledge; it merges with a near duplicate, or replaces a former value."""
    shelf = context.shelf(**identity)
    stored = shelf.add(
        NewContext(
            context_type=ContextType.KNOWLEDGE,
            title=" ".join(title.split()),
            text=content,
            summary=summary,
            keywords=tuple(keywords or ()),
            entities=tuple(entities or ()),
            confidence=confidence,
            importance=importance,
            event_time=instant("event_time", event_time),
            metadata=metadata or {},
            raw_type=raw_type or "",
            raw_id=raw_id or "",
        )
    )
    return AddedKnowledge.of(stored)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("context", "knowledge", "retrieval"),
    capabilities=("search knowledge and past events", "recall facts, preferences and decisions"),
)
def retrieve_knowledge_context(
    context: RequestContext,
    query: Annotated[
        str | None,
        Field(max_length=10_000, description="What to look for; without it, the newest are listed"),
    ] = None,
    entities: Annotated[Names | None, Field(description="Only about one of these names")] = None,
    time_range: Annotated[TimeWindow | None, Field(description="Only of this time")] = None,
    top_k: TopK = 5,
    **identity: Unpack[IdentityArguments],
) -> Retrieved:
    """Finds knowledge, and events themselves, by meaning and words, with their scores."""
    criteria = replace(
        WANTED,
        time_range=None if time_range is None else time_range.to_range(),
        entities=tuple(entities or ()),
    )
    shelf = context.shelf(**identity)
    asked = (query or "").strip()
    found = _search(shelf, asked, criteria, top_k)
    past = asks_for_past(asked)
    hits = [hit for hit in found.hits if past or not hit.is_former]
    return Retrieved.of(replace(found, hits=_merge(hits)[:top_k]), asked)


def _search(shelf: Shelf, query: str, criteria: SearchFilter, top_k: int) -> SearchResult:
    """Returns the best chunks for a query, or those of the newest contexts without one."""
    if query:
        return shelf.search(query, criteria, MOST_HITS)
    newest = shelf.contexts(criteria, top_k)
    chunks = sum(context.chunk_count for context in newest)
    return shelf.search(None, criteria, chunks)


def _merge(hits: Sequence[SearchHit]) -> tuple[SearchHit, ...]:
    """Keeps the best hit for each context and for its former value; hits are best first."""
    best: dict[tuple[str, bool], SearchHit] = {}
    for hit in hits:
        best.setdefault((hit.context.id, hit.is_former), hit)
    return tuple(best.values())

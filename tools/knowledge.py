"""Knowledge: keep what is worth knowing, and find it again beside what happened."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Unpack

from pydantic import Field, FiniteFloat

from storage.library import Shelf
from storage.models import ContextType, NewContext, SearchFilter, SearchHit, SearchResult, Stored
from storage.people.former import asks_for_past, is_former
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
"""How many chunks are found before those of one context become one hit."""

WANTED = SearchFilter(context_types=(ContextType.KNOWLEDGE, ContextType.EVENT), levels=(0,))
"""Knowledge, and events themselves: summaries are what `retrieve_event_context` is for."""


class AddedKnowledge(ToolModel):
    """What adding did.

    Attributes:
        id: The knowledge that holds it now.
        outcome: "added", "merged", or "superseded" where it took the place of another value.
        merge_count: How often it took in what said nearly the same.
        similarity: How near the two were; absent where it was not merged.
        former: What it said before, kept as past; absent where nothing was superseded.
    """

    id: str
    outcome: str
    merge_count: int
    similarity: OmitNone[FiniteFloat]
    former: OmitNone[str] = None

    @classmethod
    def of(cls, stored: Stored) -> AddedKnowledge:
        """The outcome as a tool answers it."""
        near = stored.similarity
        return cls(
            id=stored.context.id,
            outcome=stored.outcome,
            merge_count=stored.context.merge_count,
            similarity=None if near is None else round(near, 4),
            former=stored.former or None,
        )

    def to_text(self) -> str:
        """One line for the model."""
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
    """Keeps a piece of knowledge; it merges with what says nearly the same, or takes its place."""
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
    found = _found(shelf, asked, criteria, top_k)
    hits = found.hits if asks_for_past(asked) else _standing(found.hits)
    return Retrieved.of(replace(found, hits=_merged(hits)[:top_k]), asked)


def _found(shelf: Shelf, query: str, criteria: SearchFilter, top_k: int) -> SearchResult:
    """The hits: the best chunks for a query; else those of the newest contexts."""
    if query:
        return shelf.search(query, criteria, MOST_HITS)
    newest = shelf.contexts(criteria, top_k)
    chunks = sum(context.chunk_count for context in newest)
    return shelf.search(None, criteria, chunks)


def _standing(hits: tuple[SearchHit, ...]) -> tuple[SearchHit, ...]:
    """Those that tell what holds."""
    return tuple(hit for hit in hits if not is_former(hit))


def _merged(hits: tuple[SearchHit, ...]) -> tuple[SearchHit, ...]:
    """Each context once, by its best chunk, and what held before beside it: hits are best first."""
    best: dict[tuple[str, bool], SearchHit] = {}
    for hit in hits:
        best.setdefault((hit.context.id, is_former(hit)), hit)
    return tuple(best.values())

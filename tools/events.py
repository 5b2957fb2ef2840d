"""Events: records, finds and summarizes them by day, week and month."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Literal, Unpack

from pydantic import Field, FiniteFloat

from storage.events.buckets import MONTH
from storage.models import ContextType, NewContext, utc
from tools.answers.hits import Coverage, Hit
from tools.answers.params import (
    DAY_END,
    Content,
    Grade,
    Instant,
    Metadata,
    Names,
    RawId,
    RawType,
    TimeWindow,
    TopK,
    Zone,
    instant,
)
from tools.answers.summaries import BuiltSummaries, SummaryBuild
from tools.core.context import IdentityArguments, RequestContext
from tools.core.result import OmitNone, ToolModel
from tools.core.spec import Effect, ToolScope, tool

if TYPE_CHECKING:  # loaded on first use
    from storage.events.drilldown import EventHit, EventResult


class AddedEvent(ToolModel):
    """The result of adding an event."""

    id: str
    event_time: str
    time_bucket: str

    def to_text(self) -> str:
        """Formats it as one line for the model."""
        return f"Added event {self.id} at {self.event_time}."


class PathStep(ToolModel):
    """A summary on the way to an event."""

    id: str
    level: int
    time_bucket: str


class FoundEvent(Hit):
    """An event or a summary of events, with its scores.

    Attributes:
        own: Its own similarity to the query; absent if unknown.
        blended: Its score by way of the summaries; absent if none leads to it.
        path: The summaries that led to it, from the top.
        parent_id: The summary that includes it; empty if there is none.
        children_ids: The sources of a summary, oldest first.
        summarizer: Author of a summary: "client:MODEL", "endpoint:MODEL" or "extractive".
        events: How many events a summary covers; 1 for an event.
    """

    own: OmitNone[FiniteFloat]
    blended: OmitNone[FiniteFloat]
    path: list[PathStep]
    parent_id: str
    children_ids: list[str]
    summarizer: str
    events: int

    @classmethod
    def of_hit(cls, found: EventHit) -> FoundEvent:
        """Converts a search hit."""
        context = found.hit.context
        told = context.metadata if context.hierarchy_level else {}
        return cls(
            **dict(Hit.of(found.hit)),
            own=None if found.own is None else round(found.own, 4),
            blended=None if found.blended is None else round(found.blended, 4),
            path=list(map(PathStep.from_attributes, found.path)),
            parent_id=context.parent_id,
            children_ids=list(found.children_ids),
            summarizer=told.get("summarizer", ""),
            events=told.get("events", 1),
        )

    def to_text(self) -> str:
        """Formats a header, the scores and the text."""
        if self.hierarchy_level:
            count = f"{self.events} event{'' if self.events == 1 else 's'}"
            head = f"{self.title} ({self.time_bucket}, {self.summarizer} summary of {count})"
            return f"{head}\n{self._scores()}\n{self.content}"
        way = " > ".join(step.time_bucket for step in self.path)
        scores = self._scores() + (f", through {way}" if way else "")
        if self.matched:
            scores += f"; matched: {', '.join(self.matched)}"
        head = " ".join(filter(None, (self.event_time, self.title, f"(event {self.id})")))
        is_scored = self.own is not None or self.blended is not None
        return "\n".join([head, *[scores] * is_scored, self.content])

    def _scores(self) -> str:
        dense = "" if self.dense is None else f", dense {self.dense:.2f}"
        return f"score {self.score:.2f}{dense}"


class FoundEvents(ToolModel):
    """The result of a search for events.

    Attributes:
        mode: "hybrid", "lexical" while nothing is embedded, or "listing" of the latest events.
        events: Events, best first.
        summaries: The best matching summaries, best first; they do not displace events.
        coverage: How complete the search was.
    """

    mode: str
    events: list[FoundEvent]
    summaries: list[FoundEvent]
    coverage: Coverage

    @classmethod
    def of(cls, result: EventResult, *, include_summaries: bool) -> FoundEvents:
        """Converts a search result."""
        summaries = result.summaries if include_summaries else ()
        return cls(
            mode=result.mode,
            events=[FoundEvent.of_hit(hit) for hit in result.events],
            summaries=[FoundEvent.of_hit(hit) for hit in summaries],
            coverage=Coverage.of(result.status),
        )

    def to_text(self) -> str:
        """Formats the summaries and events for the model."""
        if not self.events and not self.summaries:
            head = "No event is close enough."
        else:
            head = f"{len(self.events)} event{'' if len(self.events) == 1 else 's'} ({self.mode})"
        blocks = [" ".join(filter(None, (head, self.coverage.to_text())))]
        blocks += [one.to_text() for one in self.summaries]
        blocks += [f"[{rank}] {one.to_text()}" for rank, one in enumerate(self.events, start=1)]
        return "\n\n".join(blocks)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.WRITE},
    tags=("context", "events"),
    capabilities=("record what happened and when",),
)
def add_event(
    context: RequestContext,
    content: Annotated[Content, Field(description="What happened")],
    title: Annotated[str, Field(max_length=512, description="In a few words")] = "",
    event_time: Annotated[
        Instant | None, Field(description="When, Unix seconds or ISO 8601; default: now")
    ] = None,
    timezone: Zone = "",
    summary: Annotated[str, Field(max_length=2_000, description="In short")] = "",
    keywords: Annotated[Names | None, Field(description="What it is about")] = None,
    entities: Annotated[Names | None, Field(description="Who and what took part")] = None,
    confidence: Annotated[Grade, Field(description="How sure it is, 0 to 10")] = 5.0,
    importance: Annotated[Grade, Field(description="How much it matters, 0 to 10")] = 5.0,
    metadata: Annotated[Metadata | None, Field(description="Anything to keep with it")] = None,
    raw_type: RawType | None = None,
    raw_id: RawId | None = None,
    **identity: Unpack[IdentityArguments],
) -> AddedEvent:
    """Records an event; events never change, and every call adds another one."""
    shelf = context.shelf(**identity)
    stored = shelf.add(
        NewContext(
            context_type=ContextType.EVENT,
            title=" ".join(title.split()),
            text=content,
            summary=summary,
            keywords=tuple(keywords or ()),
            entities=tuple(entities or ()),
            confidence=confidence,
            importance=importance,
            event_time=instant("event_time", event_time, timezone),
            metadata=metadata or {},
            raw_type=raw_type or "",
            raw_id=raw_id or "",
        )
    )
    return AddedEvent(
        id=stored.context.id,
        event_time=utc(stored.context.event_time).isoformat(),
        time_bucket=stored.context.time_bucket,
    )


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("context", "events", "retrieval"),
    capabilities=("recall what happened", "look back on a day, a week or a month"),
)
def retrieve_event_context(
    context: RequestContext,
    query: Annotated[
        str, Field(max_length=10_000, description="What to look for; blank lists the latest")
    ],
    time_range: Annotated[TimeWindow | None, Field(description="Only events of this time")] = None,
    top_k: TopK = 5,
    include_summaries: Annotated[
        bool, Field(description="Also the best summaries of days, weeks and months")
    ] = True,
    **identity: Unpack[IdentityArguments],
) -> FoundEvents:
    """Finds events, both directly and through the summaries of months, weeks and days."""
    shelf = context.shelf(**identity)
    window = None if time_range is None else time_range.to_range()
    return FoundEvents.of(
        shelf.events.search(query, window, top_k), include_summaries=include_summaries
    )


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ, Effect.WRITE},
    idempotent=True,
    tags=("context", "events"),
    capabilities=("sum up events by day, week and month",),
    timeout=600,
    may_become_job=True,
)
async def build_event_summaries(
    context: RequestContext,
    level: Annotated[
        int, Field(ge=1, le=3, description="1 days, 2 also ISO weeks, 3 also months")
    ] = MONTH,
    until: Annotated[
        Instant | None,
        Field(description="Days begun, weeks and months ended by then; default: now"),
    ] = None,
    summarizer: Annotated[
        Literal["auto", "extractive"],
        Field(description="auto: a model where there is one; extractive: sentences of the events"),
    ] = "auto",
    **identity: Unpack[IdentityArguments],
) -> BuiltSummaries:
    """Sums up events by day, ISO week and month; only what is new or changed is written."""
    events = context.shelf(**identity).events
    end = instant("until", until, "UTC", DAY_END)  # summaries are of days in UTC
    sampler = context.sampler if summarizer == "auto" else None
    build = SummaryBuild(events, sampler, context.report_progress)
    return await build.run(level, time.time() if end is None else end)

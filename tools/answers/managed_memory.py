"""Results of manage_memory: counts, and memories that were created, moved or deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field

from storage.models import Context, MemoryLayer, utc
from tools.core.result import OmitNone, ToolModel

if TYPE_CHECKING:  # loaded on first use
    from storage.memory.browsing import LayerStats, MemoryStats

SHOWN = 20  # limit on the memories in an answer; the rest is only counted
LINE_CHARACTERS = 120

Action = Literal["stats", "promote", "aggregate", "persist", "forget"]


class LayerCount(ToolModel):
    """The size of a layer.

    Attributes:
        layer: "l1" to "l4".
        count: Number of entries or memories.
        oldest: Date of the oldest, ISO 8601, UTC; may be empty.
        newest: Date of the newest; may be empty.
    """

    layer: str
    count: int
    oldest: str
    newest: str

    @classmethod
    def of(cls, layer: MemoryLayer, told: LayerStats) -> Self:
        """Converts the statistics of a layer."""
        return cls(
            layer=layer.label,
            count=told.count,
            oldest=_date(told.oldest),
            newest=_date(told.newest),
        )

    def to_text(self) -> str:
        """Formats it as one line."""
        span = f", {self.oldest} to {self.newest}" if self.count else ""
        return f"{self.layer}: {self.count}{span}"


class Counts(ToolModel):
    """The size of memory, and what a consolidation would process.

    Attributes:
        layers: Every layer.
        sessions: Number of sessions with entries.
        to_promote: Important entries not yet covered by a memory.
        to_aggregate: Ended sessions without an up-to-date summary.
        to_persist: Memories of layer 2 that are used often, or have long been unused.
    """

    layers: list[LayerCount]
    sessions: int
    to_promote: int
    to_aggregate: int
    to_persist: int

    @classmethod
    def of(cls, stats: MemoryStats) -> Self:
        """Converts the statistics of memory."""
        return cls(
            layers=[LayerCount.of(layer, told) for layer, told in stats.layers.items()],
            sessions=stats.sessions,
            to_promote=stats.promotable,
            to_aggregate=stats.unsummed,
            to_persist=stats.persistable,
        )

    def to_text(self) -> str:
        """Formats one line per layer, then the pending work."""
        lines = [each.to_text() for each in self.layers]
        lines.append(
            f"{_count(self.sessions, 'session', 'sessions')}; to promote {self.to_promote},"
            f" to aggregate {self.to_aggregate}, to persist {self.to_persist}"
        )
        return "\n".join(lines)


class Touched(ToolModel):
    """A memory that was created, moved or deleted, or would be.

    Attributes:
        id: Its id.
        layer: Its current layer, "l2", "l3" or "l4".
        line: Its text in one line.
    """

    id: str
    layer: str
    line: str

    @classmethod
    def of(cls, context: Context, line: str = "") -> Self:
        """Describes a memory so that a person recognizes it."""
        return cls(
            id=context.id,
            layer=MemoryLayer(context.memory_layer).label,
            line=" ".join((context.title or line).split())[:LINE_CHARACTERS],
        )


class SessionSummary(ToolModel):
    """A new summary of a session.

    Attributes:
        id: Its id.
        title: Title of the session.
        summarizer: "client:MODEL", "endpoint:MODEL" or "extractive".
    """

    id: str
    title: str
    summarizer: str


class ManagedMemory(ToolModel):
    """The outcome of an action or a dry run.

    Attributes:
        action: The requested action.
        counts: For action=stats; else absent.
        memories: The memories created, moved or deleted, or to be; at most 20.
        memory_count: Total number of those memories.
        summaries: For action=aggregate, the new summaries.
        entry_count: Entries of layer 1 that were deleted, or would be.
        dry_run: Whether this was a dry run; only for action=forget.
        note: Further remarks.
    """

    action: str
    counts: OmitNone[Counts] = None
    memories: list[Touched] = Field(default_factory=list)
    memory_count: int = 0
    summaries: list[SessionSummary] = Field(default_factory=list)
    entry_count: int = 0
    dry_run: OmitNone[bool] = None
    note: str = ""

    def to_text(self) -> str:
        """Formats the confirmation or the question for a person."""
        lines = [self._head()]
        lines += [f"- {each.line} ({each.layer}, {each.id})" for each in self.memories]
        lines += [f"- {each.title} ({each.summarizer}, {each.id})" for each in self.summaries]
        if self.memory_count > len(self.memories):
            lines.append(f"and {self.memory_count - len(self.memories)} more")
        return "\n".join(filter(None, [*lines, self.note]))

    def _head(self) -> str:
        memories = _count(self.memory_count, "memory", "memories")
        if self.counts is not None:
            return self.counts.to_text()
        if self.action == "promote":
            return f"Promoted to l2: {memories}."
        if self.action == "persist":
            return f"Moved to l4: {memories}."
        if self.action == "aggregate":
            return f"Summed up: {_count(len(self.summaries), 'session', 'sessions')}."
        entries = _count(self.entry_count, "entry", "entries")
        return f"{'Would forget' if self.dry_run else 'Forgot'} {entries} of l1 and {memories}."

    @classmethod
    def of(
        cls,
        action: Action,
        memories: Sequence[Touched],
        *,
        entry_count: int = 0,
        dry_run: bool | None = None,
        note: str = "",
    ) -> Self:
        """Builds an answer about memories; the arguments are the attributes."""
        return cls(
            action=action,
            memories=list(memories[:SHOWN]),
            memory_count=len(memories),
            entry_count=entry_count,
            dry_run=dry_run,
            note=note,
        )


def _count(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _date(seconds: float | None) -> str:
    return "" if seconds is None else utc(seconds).date().isoformat()

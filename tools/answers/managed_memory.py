"""What the management of memory answers: counts, and what was made, moved or forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field

from storage.memory.models import MemoryLayer
from storage.models import Context
from tools.answers.dates import utc
from tools.core.result import OmitNone, ToolModel

if TYPE_CHECKING:  # loaded on first use
    from storage.memory.statistics import LayerStats, MemoryStats

SHOWN = 20
"""Memories of an answer; the others are counted."""

LINE_CHARACTERS = 120

Action = Literal["stats", "promote", "aggregate", "persist", "forget"]


class LayerCount(ToolModel):
    """How much a layer holds.

    Attributes:
        layer: "l1" to "l4".
        count: Entries or memories.
        oldest: Date of the oldest, ISO 8601, UTC; empty where there is none.
        newest: Date of the newest; empty where there is none.
    """

    layer: str
    count: int
    oldest: str
    newest: str

    @classmethod
    def of(cls, layer: MemoryLayer, told: LayerStats) -> Self:
        """The counts as a tool answers them."""
        return cls(
            layer=layer.label,
            count=told.count,
            oldest=_date(told.oldest),
            newest=_date(told.newest),
        )

    def to_text(self) -> str:
        """One line."""
        span = f", {self.oldest} to {self.newest}" if self.count else ""
        return f"{self.layer}: {self.count}{span}"


class Counts(ToolModel):
    """How much is in memory, and what a consolidation would do.

    Attributes:
        layers: Each layer.
        sessions: Sessions that there are entries of.
        to_promote: Important entries that no memory says yet.
        to_aggregate: Sessions that ended without a summary, or went on since.
        to_persist: Memories of layer 2 that are much used, or not used for long.
    """

    layers: list[LayerCount]
    sessions: int
    to_promote: int
    to_aggregate: int
    to_persist: int

    @classmethod
    def of(cls, stats: MemoryStats) -> Self:
        """The counts as a tool answers them."""
        return cls(
            layers=[LayerCount.of(layer, told) for layer, told in stats.layers.items()],
            sessions=stats.sessions,
            to_promote=stats.promotable,
            to_aggregate=stats.unsummed,
            to_persist=stats.persistable,
        )

    def to_text(self) -> str:
        """A line for each layer, and what is to be done."""
        lines = [each.to_text() for each in self.layers]
        lines.append(
            f"{_counted(self.sessions, 'session', 'sessions')}; to promote {self.to_promote},"
            f" to aggregate {self.to_aggregate}, to persist {self.to_persist}"
        )
        return "\n".join(lines)


class Touched(ToolModel):
    """A memory that was made, moved or forgotten, or would be.

    Attributes:
        id: Its id.
        layer: "l2", "l3" or "l4", where it is now.
        line: What it says, in one line.
    """

    id: str
    layer: str
    line: str

    @classmethod
    def of(cls, context: Context, line: str = "") -> Self:
        """What tells a person which one it is."""
        return cls(
            id=context.id,
            layer=MemoryLayer(context.memory_layer).label,
            line=" ".join((context.title or line).split())[:LINE_CHARACTERS],
        )


class SessionSummary(ToolModel):
    """A summary that was written.

    Attributes:
        id: Its id.
        title: Which session it is of.
        summarizer: "client:MODEL", "endpoint:MODEL" or "extractive".
    """

    id: str
    title: str
    summarizer: str


class ManagedMemory(ToolModel):
    """What was done, or would be.

    Attributes:
        action: As asked for.
        counts: Of action=stats; else absent.
        memories: Those that were made, moved or forgotten, or would be; at most 20.
        memory_count: How many there are of them.
        summaries: Of action=aggregate, what was written.
        entry_count: Entries of layer 1 that were forgotten, or would be.
        dry_run: Whether nothing was deleted; absent but of action=forget.
        note: What is to be known beside that.
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
        """What a person is told, or asked."""
        lines = [self._head()]
        lines += [f"- {each.line} ({each.layer}, {each.id})" for each in self.memories]
        lines += [f"- {each.title} ({each.summarizer}, {each.id})" for each in self.summaries]
        if self.memory_count > len(self.memories):
            lines.append(f"and {self.memory_count - len(self.memories)} more")
        return "\n".join(filter(None, [*lines, self.note]))

    def _head(self) -> str:
        memories = _counted(self.memory_count, "memory", "memories")
        if self.counts is not None:
            return self.counts.to_text()
        if self.action == "promote":
            return f"Promoted to l2: {memories}."
        if self.action == "persist":
            return f"Moved to l4: {memories}."
        if self.action == "aggregate":
            return f"Summed up: {_counted(len(self.summaries), 'session', 'sessions')}."
        entries = _counted(self.entry_count, "entry", "entries")
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
        """An answer about memories; arguments as the attributes."""
        return cls(
            action=action,
            memories=list(memories[:SHOWN]),
            memory_count=len(memories),
            entry_count=entry_count,
            dry_run=dry_run,
            note=note,
        )


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _date(seconds: float | None) -> str:
    return "" if seconds is None else utc(seconds).date().isoformat()

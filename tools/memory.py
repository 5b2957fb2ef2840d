"""Memory: stores something in one call, and browses what is stored, starting from an index."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Unpack

from pydantic import Field, FiniteFloat

from storage.models import IMPORTANT, Entry, MemoryLayer, Stored, utc
from tools.answers.params import (
    Content,
    Grade,
    Layer,
    Metadata,
    Names,
    Numbers,
    SessionId,
    layer_of,
)
from tools.core.context import IdentityArguments, RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.core.result import OmitNone, ToolModel
from tools.core.spec import Alias, Effect, ToolScope, tool

if TYPE_CHECKING:  # loaded on first use
    from storage.memory.browsing import Memory
    from storage.memory.memories import Memories

LINE_CHARACTERS = 120

_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"))  # seconds and names of the units for ages


class Remembered(ToolModel):
    """The result of remembering something.

    Attributes:
        id: The memory that now holds it.
        layer: "l2", the working set of important memories, or "l4", long-term memory.
        outcome: "added", "merged", or "superseded" if it replaced another value.
        merge_count: How often near duplicates were merged into it.
        merged_into: The start of the memory it was merged into; empty if not merged.
        similarity: Similarity to that memory; absent if not merged.
        former: Its former text, kept as past; absent if nothing was superseded.
    """

    id: str
    layer: str
    outcome: str
    merge_count: int
    merged_into: str
    similarity: OmitNone[FiniteFloat]
    former: OmitNone[str] = None

    @classmethod
    def of(cls, stored: Stored, merged_into: str) -> Remembered:
        """Converts a storage result."""
        near = stored.similarity
        return cls(
            id=stored.context.id,
            layer=MemoryLayer(stored.context.memory_layer).label,
            outcome=stored.outcome,
            merge_count=stored.context.merge_count,
            merged_into=merged_into,
            similarity=None if near is None else round(near, 4),
            former=stored.former or None,
        )

    def to_text(self) -> str:
        """Formats it as one line for the model."""
        if self.former:
            return f"Now said by memory {self.id} ({self.layer}); kept as past: {self.former}"
        if self.outcome == "merged":
            return (
                f"Merged into memory {self.id} ({self.layer}), which said nearly the same"
                f" (similarity {self.similarity}): {self.merged_into}"
            )
        return f"Remembered as {self.id} ({self.layer})."


class BrowsedItem(ToolModel):
    """An entry or a memory.

    Attributes:
        number: Selects it; never changes.
        id: ID of a memory for other tools; empty for an entry.
        time: When it happened or was last changed; ISO 8601, UTC.
        age: Time since then.
        importance: 0 to 10.
        weight: Sort key of layer 2; absent elsewhere.
        session: The session it comes from.
        line: A one-line summary.
        content: The full text if selected; else empty.
    """

    number: int
    id: str
    time: str
    age: str
    importance: FiniteFloat
    weight: OmitNone[FiniteFloat]
    session: str
    line: str
    content: str

    @classmethod
    def of_entry(cls, entry: Entry, *, content: str = "") -> BrowsedItem:
        """Converts an entry of layer 1."""
        failed = "" if entry.outcome == "ok" else f"({entry.outcome})"
        told = f"{entry.action} {entry.target} {failed} {entry.said}"
        return cls(
            number=entry.seq,
            id="",
            time=utc(entry.time).isoformat(timespec="seconds"),
            age=_age(entry.time),
            importance=entry.importance,
            weight=None,
            session=entry.session_id,
            line=_line(told if entry.target else f"{entry.text} {failed}"),
            content=content,
        )

    @classmethod
    def of_memory(cls, memory: Memory, *, content: str = "") -> BrowsedItem:
        """Converts a memory of layers 2 to 4."""
        context = memory.context
        is_weighed = context.memory_layer == MemoryLayer.IMPORTANT
        is_summary = context.memory_layer == MemoryLayer.SUMMARY
        when = context.event_time if is_summary else context.update_time
        is_titled = context.title and not memory.opening.startswith(context.title)
        title = f"{context.title}: " if is_titled else ""
        return cls(
            number=memory.number,
            id=context.id,
            time=utc(when).isoformat(timespec="seconds"),
            age=_age(when),
            importance=context.importance,
            weight=round(memory.weight, 2) if is_weighed else None,
            session=memory.session_id,
            line=_line(title + memory.opening),
            content=content,
        )

    def to_text(self) -> str:
        """Formats one line, or a header and the full text."""
        head = f"[{self.number}] {self.age} ago, importance {self.importance:g}"
        if self.id:
            head += f", {self.id}"
        return f"{head}: {self.line}" if not self.content else f"{head}\n{self.content}"


class BrowsedMemory(ToolModel):
    """The result of browsing memory.

    Attributes:
        action: "list" or "select".
        layer: The layer.
        items: Layer 2 by weight, other layers newest first; selected items in the requested order.
        more: Whether the layer has more than `limit`.
        missing: Requested numbers that do not exist in the layer.
        session: The session browsed; absent for all sessions.
    """

    action: str
    layer: str
    items: list[BrowsedItem]
    more: bool
    missing: list[int]
    session: OmitNone[str] = None

    def to_text(self) -> str:
        """Formats the index or the contents."""
        lines = [each.to_text() for each in self.items]
        if not lines and not self.missing:
            lines = [f"Nothing in {self.layer}."]
            if self.session is not None:
                lines = [f"Nothing in {self.layer} of session {self.session}: try session=all."]
        if self.more:
            lines.append("There is more: raise limit.")
        elif self.action == "list" and self.items:
            lines.append("action=select with indices shows some in full.")
        if self.missing:
            told = ", ".join(map(str, self.missing))
            lines.append(f"Not in {self.layer}: {told}. action=list shows what there is.")
        return ("\n" if self.action == "list" else "\n\n").join(lines)


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.WRITE},
    tags=("context", "memory"),
    capabilities=("remember a fact, a preference or a decision across sessions",),
    aliases_elsewhere=("save_memory",),
)
def remember(
    context: RequestContext,
    content: Annotated[Content, Field(description="What to keep"), Alias("fact")],
    importance: Annotated[
        Grade, Field(description="0 to 10; from 6 on, part of the working set")
    ] = IMPORTANT,
    title: Annotated[str, Field(max_length=512, description="In a few words")] = "",
    entities: Annotated[Names | None, Field(description="Names it is about")] = None,
    keywords: Annotated[Names | None, Field(description="What it is about")] = None,
    metadata: Annotated[Metadata | None, Field(description="Anything to keep with it")] = None,
    replaces: Annotated[
        str, Field(max_length=20_000, description="ID or text of the memory it corrects")
    ] = "",
    **identity: Unpack[IdentityArguments],
) -> Remembered:
    """Keeps something for this and every later session; near duplicates are merged."""
    memories = context.shelf(**identity).memories
    stored = memories.remember(
        content,
        title=" ".join(title.split()),
        importance=importance,
        entities=tuple(entities or ()),
        keywords=tuple(keywords or ()),
        session_id=context.session_id,
        metadata=metadata,
        replaces=replaces,
    )
    if stored.outcome != "merged":
        return Remembered.of(stored, "")
    found = memories.doomed(ids=[stored.context.id]).memories
    return Remembered.of(stored, _line("".join(each.opening for each in found)))


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("context", "memory"),
    capabilities=(
        "look through recent calls and messages, important memories, session summaries and facts",
    ),
)
def browse_memory(
    context: RequestContext,
    action: Annotated[
        Literal["list", "select"],
        Field(description="list: one line each; select: all of those in indices"),
    ],
    layer: Layer,
    limit: Annotated[int, Field(ge=1, le=1000, description="Most items of a list")] = 10,
    indices: Annotated[
        Numbers | None, Field(description="The numbers that a list shows; they stay valid")
    ] = None,
    session: Annotated[
        SessionId | None, Field(description="this, all, or an id; default: this in l1, else all")
    ] = None,
    **identity: Unpack[IdentityArguments],
) -> BrowsedMemory:
    """Looks through a layer of memory: l1 recent, l2 important, l3 summaries, l4 long-term."""
    memories = context.shelf(**identity).memories
    if action == "select":
        if not indices:
            raise InvalidArgumentsError(
                "indices: action=select needs at least one.",
                next_actions=("Call it with action=list, and take the numbers from there.",),
            )
        return _select(memories, layer_of(layer), indices)
    if indices:
        raise InvalidArgumentsError(
            "indices: only action=select takes them.",
            next_actions=("Call it with action=select, or leave indices out.",),
        )
    wanted = session or ("this" if layer == "l1" else "all")
    of_session = {"this": context.session_id, "all": None}.get(wanted, wanted)
    return _list(memories, layer_of(layer), limit, of_session)


def _list(
    memories: Memories, layer: MemoryLayer, limit: int, session_id: str | None
) -> BrowsedMemory:
    if layer is MemoryLayer.RECENT:
        items = [BrowsedItem.of_entry(each) for each in memories.recent(session_id, limit + 1)]
    else:
        found = memories.listed(layer, limit + 1, session_id=session_id)
        items = [BrowsedItem.of_memory(each) for each in found]
    return BrowsedMemory(
        action="list",
        layer=layer.label,
        items=items[:limit],
        more=len(items) > limit,
        missing=[],
        session=session_id,
    )


def _select(memories: Memories, layer: MemoryLayer, numbers: Sequence[int]) -> BrowsedMemory:
    if layer is MemoryLayer.RECENT:
        items = [
            BrowsedItem.of_entry(each, content=each.text) for each in memories.entries(numbers)
        ]
    else:
        items = [
            BrowsedItem.of_memory(each, content=text)
            for each, text in memories.select(numbers, layer)
        ]
    found = {each.number for each in items}
    return BrowsedMemory(
        action="select",
        layer=layer.label,
        items=items,
        more=False,
        missing=[each for each in dict.fromkeys(numbers) if each not in found],
    )


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE_CHARACTERS else f"{line[: LINE_CHARACTERS - 2]} …"


def _age(moment: float) -> str:
    seconds = max(time.time() - moment, 0.0)
    for span, name in _SPANS:
        if seconds >= span:
            return f"{seconds // span:.0f} {name}"
    return f"{seconds:.0f} s"

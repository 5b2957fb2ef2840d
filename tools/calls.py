"""Searches the record of earlier calls and messages."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Literal, Unpack

from pydantic import Field, FiniteFloat

from storage.library import Shelf
from storage.models import Entry, utc
from tools.answers.params import TimeWindow
from tools.core.context import IdentityArguments, RequestContext
from tools.core.errors import InvalidArgumentsError, NotFoundError
from tools.core.registry import ToolRegistry
from tools.core.result import ToolModel
from tools.core.spec import Effect, ToolScope, tool

EXCERPT_CHARACTERS = 160
"""Limit on an answer in a line of text; the structured result has all that was stored."""

NAMED = 10  # number of sessions or actions that are named if nothing matches
Value = Annotated[str, Field(min_length=1, max_length=1_024, description="What it must match")]


class RecordedEvent(ToolModel):
    """A recorded call or message.

    Attributes:
        id: Its number; later ones have higher numbers.
        time: When it began, ISO 8601, UTC.
        session: The conversation it belongs to.
        client: The name of the client.
        kind: "call" or "message".
        action: The tool, or the prompt as "prompt:NAME".
        target: What it was about; empty if that was deleted.
        arguments: Its arguments, without secrets, shortened.
        outcome: "ok", "cancelled", or the error_type of a failure.
        milliseconds: How long it took.
        importance: How much it matters, 0 to 10.
        excerpt: The start of the answer or message; not stored for calls on stored context.
    """

    id: int
    time: str
    session: str
    client: str
    kind: str
    action: str
    target: str
    arguments: dict[str, Any]
    outcome: str
    milliseconds: FiniteFloat
    importance: FiniteFloat
    excerpt: str

    @classmethod
    def of(cls, entry: Entry) -> RecordedEvent:
        """Converts an entry."""
        return cls.from_attributes(
            entry,
            id=entry.seq,
            time=utc(entry.time).isoformat(timespec="milliseconds"),
            session=entry.session_id,
            milliseconds=round(entry.milliseconds, 1),
            excerpt=entry.said,
        )

    def to_line(self) -> str:
        """Formats time, action, arguments and outcome as one line; escapes line breaks."""
        given = ", ".join(
            f"{key}={value}" for key, value in self.arguments.items() if value != self.target
        )
        said = " ".join(self.excerpt.removeprefix(f"{self.outcome}: ").split())[:EXCERPT_CHARACTERS]
        what = " ".join(f"{self.action} {self.target} {given and f'({given})'}".split())
        return f"#{self.id} {self.time} {what} -> {self.outcome}{said and f': {said}'}"


class RecordedEvents(ToolModel):
    """Recorded calls and messages, newest first.

    Attributes:
        events: The matching ones, from the offset on.
        has_more: Whether there are more.
        note: What is recorded, if nothing matches.
    """

    events: list[RecordedEvent]
    has_more: bool
    note: str

    def to_text(self) -> str:
        """One line each."""
        more = "There are more: ask again with a higher offset." if self.has_more else ""
        return "\n".join(filter(None, [*(each.to_line() for each in self.events), more, self.note]))


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    tags=("context", "memory"),
    capabilities=(
        "which tools were called before, and what came of it",
        "what was done with a file, or in a session",
    ),
)
def query_events(
    context: RequestContext,
    filter_by: Annotated[
        Literal["action", "node", "target", "recent"],
        Field(description="What value names: a tool, who did it, what it was about; recent: all"),
    ] = "recent",
    value: Annotated[
        Value | None,
        Field(
            description="A tool, or read, write, execute or external; a session, client, agent or "
            "device; a path, name or query"
        ),
    ] = None,
    text: Annotated[Value | None, Field(description="Text in it, in any case")] = None,
    outcome: Annotated[
        str | None, Field(max_length=64, description="ok, failed, cancelled, or an error_type")
    ] = None,
    time_range: Annotated[TimeWindow | None, Field(description="When it began")] = None,
    session: Annotated[
        str, Field(min_length=1, max_length=256, description="this, all, or a session's id")
    ] = "all",
    limit: Annotated[int, Field(ge=1, le=1_000, description="Most events")] = 20,
    offset: Annotated[int, Field(ge=0, le=2**40, description="How many to leave out")] = 0,
    **identity: Unpack[IdentityArguments],
) -> RecordedEvents:
    """Finds recorded tool calls and messages of this session and earlier ones, newest first."""
    if (value is None) != (filter_by == "recent"):
        raise InvalidArgumentsError(
            f"value: {filter_by} needs one." if value is None else "value: recent takes none.",
            next_actions=["Give filter_by action, node or target together with a value."],
        )
    shelf = context.shelf(**identity)
    session_id = _session(context, shelf, session)
    window = None if time_range is None else time_range.to_range()
    find = partial(
        shelf.entries.find,
        text=text,
        outcome=outcome,
        since=window and window.start,
        until=window and window.end,
        session_id=session_id,
    )
    wanted: dict[str, Any] = {}
    if value is not None:
        wanted = {filter_by: value}
        if filter_by == "action":
            wanted = {"actions": _actions(context.registry, value)}
    if filter_by == "target" and not find(**wanted, limit=1):
        wanted = {"target_part": value}
    found = find(**wanted, limit=limit + 1, offset=offset)
    return RecordedEvents(
        events=[RecordedEvent.of(entry) for entry in found[:limit]],
        has_more=len(found) > limit,
        note="" if found else _what_there_is(shelf),
    )


def _actions(registry: ToolRegistry, value: str) -> Sequence[str]:
    """Returns the tools that a value means: one by name or alias, or all with an effect."""
    if value in set(Effect):
        return [each.name for each in registry.specs() if value in each.effects]
    spec = registry.get(value)
    if spec is not None:
        return [spec.name]
    return [value]  # a prompt, or a tool that no longer exists


def _session(context: RequestContext, shelf: Shelf, session: str) -> str | None:
    if session == "all":
        return None
    if session == "this":
        return context.session_id
    if not shelf.entries.count(session):
        raise NotFoundError(
            f"session: none of this user's sessions is {session[:64]!r}.",
            suggestions=[each.id for each in shelf.entries.sessions(NAMED)],
            next_actions=["Give this, all, or the id of a session."],
        )
    return session


def _what_there_is(shelf: Shelf) -> str:
    tally = shelf.entries.tally()
    if not tally:
        return "Nothing matches: nothing is recorded yet."
    named = ", ".join(f"{action} ({count})" for action, count in list(tally.items())[:NAMED])
    sessions = len(shelf.entries.sessions(1_000))
    others = f" and {len(tally) - NAMED} more" if len(tally) > NAMED else ""
    in_all = f"{sum(tally.values())} events in {sessions} session{'' if sessions == 1 else 's'}"
    return f"Nothing matches. Recorded are {in_all}: {named}{others}."

"""Programs over tools: run code that calls many tools and returns only what it prints."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from tools.core.calling.call import PausableDeadline
from tools.core.context import RequestContext
from tools.core.errors import DeadlineError, ToolFailedError
from tools.core.result import ToolModel
from tools.core.spec import Effect, ToolScope, tool
from tools.core.unicode_safety import visible_controls
from tools.sandbox.processes.output import MOST_SECONDS, Capture

if TYPE_CHECKING:  # loaded on first use
    from tools.functions.programs.calls import ProgramCalls
    from tools.functions.programs.code_workers import Outcome

MOST_CALLS = 1_000

BESIDES = 500  # characters reserved for notes and calls, in addition to the program's output
OMISSION = 100  # maximum length of the note about omitted output
PRINTED_BYTES = 1_000_000  # limit on the output that is kept while a program runs
PRINTED_BEFORE = 1_000  # bytes of the output before a failure that are shown
ERROR_CHARACTERS = 8_000  # limit on a program's error message
MOST_NOTES = 10
NOTE_CHARACTERS = 300


class CalledTool(TypedDict):
    """Statistics on the calls of one tool.

    Attributes:
        tool: The tool.
        calls: Number of calls.
        failed: Number of failed calls.
    """

    tool: str
    calls: int
    failed: int


class ProgramResult(ToolModel):
    """The result of a program.

    Attributes:
        printed: Its output.
        value: Its return value or last expression.
        calls: The calls it made.
        truncated: Whether output was omitted.
        notes: Further notes.
    """

    printed: str
    value: Any
    calls: list[CalledTool]
    truncated: bool
    notes: list[str]

    def to_text(self) -> str:
        """Formats the output and the value, then one line for each note and call."""
        parts = [self.printed.rstrip("\n")] if self.printed else []
        if self.value is not None:
            is_text = isinstance(self.value, str)
            parts.append(visible_controls(self.value) if is_text else _json(self.value))
        if not parts:
            parts.append("[It printed and returned nothing.]")
        return "\n".join([*parts, *(f"[{note}]" for note in self.notes)])


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.EXECUTE},
    destructive=True,  # as the tools that it calls may be
    tags=("agent",),
    capabilities=(
        "run a program that calls tools",
        "do the same with many files or records, in one call",
        "filter, join and count what tools answer",
    ),
    timeout=MOST_SECONDS + 60,
    resumable=True,
    may_become_job=True,
    in_cell=True,
)
async def run_code(
    context: RequestContext,
    code: Annotated[str, Field(min_length=1, max_length=100_000, description="Python")],
    timeout_seconds: Annotated[
        float, Field(gt=0, le=MOST_SECONDS, description="It is ended then")
    ] = 60,
    max_calls: Annotated[
        int, Field(ge=0, le=MOST_CALLS, description="Calls that it may make")
    ] = 100,
) -> ProgramResult:
    """Runs Python that calls tools: instead of many calls, or of long results that you only skim.

    `r = await tools.grep(pattern="x")` gives the structured result (r.matches) or text, and raises
    ToolError. You read what is printed and the last expression. Files and network only by tools.
    """
    from tools.functions.programs.calls import ProgramCalls

    calls, printed = ProgramCalls(max_calls), Capture(PRINTED_BYTES)
    digest = sha256(code.encode(errors="surrogatepass")).hexdigest()
    with context.looping(digest, calls.remaining) as (looping, loop):
        outcome = await _outcome(code, timeout_seconds, calls, printed, looping)
        needed = [f"Needs approval: {each}" for each in loop.needed]
    if outcome is None:
        raise DeadlineError(
            _failure(f"It was ended after {timeout_seconds:g} seconds.", printed, calls, needed),
            next_actions=["Look at what its calls did before you run it again."],
        )
    notes = [visible_controls(each)[:NOTE_CHARACTERS] for each in outcome.notes[:MOST_NOTES]]
    notes += [visible_controls(each)[:NOTE_CHARACTERS] for each in calls.notes[:MOST_NOTES]]
    notes += needed
    if outcome.error is not None:
        raise ToolFailedError(_failure(outcome.error, printed, calls, notes))
    context.machine.last_programs.keep(context.identity, context.session_id, code)
    return _result(outcome.value, printed, calls, notes)


async def _outcome(
    code: str, seconds: float, calls: ProgramCalls, printed: Capture, context: RequestContext
) -> Outcome | None:
    """Runs the program and ends its process; returns None if it exceeded its time limit."""
    from tools.functions.programs.code_workers import outcome_of, started

    async with started(code, context.machine, printed.feed) as worker:
        deadline = PausableDeadline(seconds, context.deadline)
        with deadline.scope:
            made = calls.within(replace(context, deadline=deadline))
            return await outcome_of(worker, made)
        await worker.aclose()  # it has not answered: its output is complete once it has ended
    return None


def _result(
    value: Any,  # noqa: ANN401  # any JSON
    printed: Capture,
    calls: ProgramCalls,
    notes: list[str],
) -> ProgramResult:
    """Builds the result of a successful program."""
    excerpt = printed.excerpt(PRINTED_BYTES)
    if calls.made:
        notes = [*notes, f"calls: {calls}"]
    return ProgramResult(
        printed=visible_controls(excerpt.text),
        value=value,
        calls=[
            CalledTool(tool=each.tool, calls=each.made, failed=each.failed) for each in calls.made
        ],
        truncated=bool(excerpt.omitted),
        notes=notes,
    )


def _failure(what: str, printed: Capture, calls: ProgramCalls, notes: Sequence[str]) -> str:
    """Formats the reason for a failure, and what the program did before it."""
    lines = [visible_controls(what[:ERROR_CHARACTERS])]
    if printed.size:
        excerpt = printed.excerpt(PRINTED_BEFORE).text.rstrip("\n")
        lines.append(f"[printed before]\n{visible_controls(excerpt)}")
    lines += [f"[{note}]" for note in notes]
    return "\n".join([*lines, f"[calls: {calls}]"])


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

"""Makes the calls of one program on the normal call path, counted and limited."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tools.answers.call_results import advised
from tools.answers.tool_cards import parameters
from tools.conversion.results.jsonable import NULLS
from tools.core.calling.nested import ToolCall
from tools.core.context import Grant, RequestContext
from tools.core.elicitation.asker import LogLevel, Peer
from tools.core.errors import InvalidArgumentsError, RateLimitedError, ToolError
from tools.core.result import ToolResult
from tools.core.spec import ToolSpec
from tools.functions.programs.namespace import POSITIONAL

LONGEST_NAME = 64  # maximum characters of a tool's name that are shown; no tool has a longer one
MOST_NAMED = 20  # maximum tools that are listed by name


@dataclass(slots=True)
class MadeCalls:
    """The calls of one tool."""

    tool: str
    made: int = 0
    failed: int = 0
    open: int = 0

    def __str__(self) -> str:
        notes = [f"{self.failed} failed"] * (self.failed > 0)
        notes += [f"{self.open} not finished"] * (self.open > 0)
        return f"{self.made} {self.tool}" + (f" ({', '.join(notes)})" if notes else "")


class ProgramCalls:
    """Makes the calls of a program on behalf of its caller."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: dict[str, MadeCalls] = {}
        self._notes: dict[str, None] = {}

    @property
    def made(self) -> list[MadeCalls]:
        """The calls made so far, by tool."""
        return list(self._made.values())

    @property
    def notes(self) -> list[str]:
        """Notes, by tool, on numbers in structured results that JSON does not have."""
        return list(self._notes)

    def remaining(self) -> int:
        """Returns how many more calls the program may make."""
        return self._most - sum(each.made for each in self._made.values())

    def within(self, context: RequestContext) -> RequestContext:
        """Returns the context for the program's process: its calls, but no peer or sampler."""
        alone = replace(context, link=replace(context.link, peer=_NoPeer(), sampler=None))
        return alone.granted(Grant(call=partial(self._answer, context)))

    def __str__(self) -> str:
        told = list(map(str, self.made[:MOST_NAMED]))
        more = len(self._made) - len(told)
        return ", ".join([*told, *[f"{more} more tools"] * (more > 0)]) or "none"

    async def _answer(
        self,
        context: RequestContext,
        _within: RequestContext,
        name: str,
        arguments: Mapping[str, Any],
    ) -> ToolResult:
        """Returns what the program gets from a call: the structured result, or the whole text."""
        try:
            result = await self._call(context, name, arguments)
        except ToolError as error:
            return ToolResult.failure(error)
        text = "\n".join(filter(None, (result.text, result.added)))
        is_told = result.is_error or not result.structured
        last = result.text.rpartition("\n")[2]
        if last.startswith(NULLS) and not is_told and len(self._notes) < MOST_NAMED:
            self._notes[f"{name[:LONGEST_NAME]}: {last.strip('[]')}"] = None
        return ToolResult(result.structured, text if is_told else "", result.is_error)

    async def _call(
        self, context: RequestContext, name: str, arguments: Mapping[str, Any]
    ) -> ToolResult:
        registry = context.registry
        spec = registry.get(name)
        if spec is not None and _may_know(spec, context):
            arguments = _name_arguments(spec, dict(arguments))
            if spec.is_proxy or spec.name == context.tool:  # its further calls would not be counted
                raise InvalidArgumentsError(
                    f"A program cannot call {spec.name}.",
                    next_actions=["Call the tool itself: await tools.NAME(argument=…)."],
                )
        if self.remaining() <= 0:
            raise RateLimitedError(
                f"{name} was not called: the program has made the {self._most} calls that it may.",
                next_actions=["Do it with fewer calls, or run it with a higher max_calls."],
            )
        tool = name[:LONGEST_NAME] if spec is None else spec.name
        made = self._made.setdefault(tool, MadeCalls(tool))
        made.made += 1
        made.open += 1
        await context.report_progress(self._most - self.remaining(), None, f"calls: {self}")
        result = await context.result_of(name, arguments)
        made.open -= 1  # cancelled calls stay open
        made.failed += result.is_error
        return advised(result, registry, ToolCall(name, arguments))


class _NoPeer(Peer):
    """The peer of a program: an agent wrote it, and must not write to the server's log."""

    async def log(self, tool: str, level: LogLevel, text: str) -> None:
        """Drops log messages, since programs have no function that logs."""


def _may_know(spec: ToolSpec, context: RequestContext) -> bool:
    """Returns whether the caller may learn about a tool; otherwise the call path reports it."""
    return not spec.quarantine_reason and (
        context.tool_set is None or context.tool_set.admits(spec)
    )


def _name_arguments(spec: ToolSpec, arguments: dict[str, Any]) -> dict[str, Any]:
    """Names the positional arguments in the order of the schema.

    The order in another server's schema may be arbitrary, so there only a sole required argument
    can be positional.
    """
    values = arguments.pop(POSITIONAL, [])
    if values == []:
        return arguments
    properties = list(spec.input_schema.get("properties", {}))
    if spec.server:
        required = list(spec.input_schema.get("required", ()))
        properties = required if len(required) == 1 else []
    names = properties[: len(values)] if isinstance(values, list) else []
    if not names or len(names) < len(values) or not arguments.keys().isdisjoint(names):
        raise InvalidArgumentsError(f"{spec.name}: name its arguments: {parameters(spec)}.")
    return {**dict(zip(names, values, strict=True)), **arguments}

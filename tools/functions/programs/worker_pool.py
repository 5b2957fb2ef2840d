"""Keeps the processes of created tools warm for a while after a call."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import anyio
from pydantic import ValidationError

from storage.catalog.created_tools import CreatedTool
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError, ToolFailedError
from tools.core.result import ToolFailure, ToolResult, decode_result
from tools.functions.programs.calls import ProgramCalls
from tools.functions.programs.code_workers import CodeWorkers
from tools.functions.programs.source_analysis import Draft
from tools.functions.workers.messages import Load, Loaded, Message
from tools.functions.workers.worker import Worker, WorkerEndedError

IDLE_SECONDS = 180.0  # seconds that a process waits for its next call
BUSY_SECONDS = 300.0  # total working time of a process, whose CPU limit counts from its start
MOST_WARM = 8  # maximum waiting processes; the one that has waited longest is ended
MOST_CALLS = 100  # maximum calls of other tools by one call
LOAD_SECONDS = 20.0  # time limit for loading the source

_logger = logging.getLogger("toolcrib")

Key = tuple[Hashable, ...]


@dataclass(eq=False, slots=True)
class Warm:
    """A warm process."""

    worker: Worker
    # The tool it has loaded, and the caller's rights; empty until it is kept for a tool.
    key: Key = ()
    busy: float = 0.0  # total seconds of its calls
    used: float = 0.0


class WarmTools:
    """Runs created tools, each call in a confined process without other calls.

    Traces of a call in its process only meet calls with the same rights in the same session, so
    code cannot act with the rights of another call.
    """

    def __init__(self, code_workers: Callable[[], Awaitable[CodeWorkers]]) -> None:
        self._code_workers = code_workers
        self._idle: list[Warm] = []  # the waiting processes, longest waiting first

    @asynccontextmanager
    async def converted(self, name: str, draft: Draft) -> AsyncIterator[tuple[Warm, Message]]:
        """Loads a draft, and yields its process with the tool as this describes it.

        The process ends with the block, unless it is kept for the tool.
        """
        warm = Warm(await self._load(name, draft.source))
        try:
            yield warm, _offer_of(draft, warm.worker.loaded)
        finally:
            if not warm.key:
                await warm.worker.aclose()

    async def call(
        self, tool: CreatedTool, arguments: Mapping[str, Any], context: RequestContext
    ) -> ToolResult:
        """Runs a created tool."""
        asked = {"key": ("tool", tool.definition["function"]), "arguments": arguments}
        calls = ProgramCalls(MOST_CALLS)
        async with self._worker(tool, context) as worker:
            try:
                with context.looping(tool.digest, calls.remaining) as (looping, loop):
                    result = decode_result(await worker.call(asked, calls.within(looping)))
                # In a call within another, the outer loop reports it.
                needed = loop.needed if context.loop is None else ()
                return _with_notes(result, [f"[Needs approval: {each}]" for each in needed])
            except WorkerEndedError as error:
                raise ToolFailedError(
                    f"{tool.name} did not finish: its process {error}.",
                    next_actions=["Ask for less in one call, or create it again without that."],
                ) from None  # already logged
            except (KeyError, TypeError, ValueError, ValidationError) as error:
                raise ToolFailedError(f"{tool.name} did not return a valid result.") from error

    async def keep_for(self, warm: Warm, tool: CreatedTool, context: RequestContext) -> None:
        """Keeps a process for calls of the tool that was created from its draft."""
        warm.key = _key(tool, context)
        await self._keep(warm)

    async def _keep(self, warm: Warm) -> None:
        """Keeps a process for its next call; ends the oldest if there are too many."""
        warm.used = time.monotonic()
        self._idle.append(warm)
        await self._end(self._idle[:-MOST_WARM])

    async def sweep(self) -> None:
        """Ends the processes that were not used for a while."""
        limit = time.monotonic() - IDLE_SECONDS
        await self._end([each for each in self._idle if each.used < limit])

    @asynccontextmanager
    async def _worker(self, tool: CreatedTool, context: RequestContext) -> AsyncIterator[Worker]:
        key = _key(tool, context)
        fitting = (each for each in reversed(self._idle) if each.key == key)
        warm = next((each for each in fitting if not each.worker.retired), None)
        if warm is None:
            warm = Warm(await self._load(tool.name, tool.source), key)
        else:
            self._idle.remove(warm)
        began = time.monotonic()
        try:
            yield warm.worker
        except BaseException:  # the next call must not meet the traces of an aborted one
            await warm.worker.aclose()
            raise
        warm.busy += time.monotonic() - began
        with anyio.CancelScope(shield=True):
            if warm.busy > BUSY_SECONDS:
                await warm.worker.aclose()
            else:
                await self._keep(warm)

    async def _end(self, given_up: list[Warm]) -> None:
        self._idle = [each for each in self._idle if each not in given_up]
        for each in given_up:
            await each.worker.aclose()

    async def _load(self, name: str, source: str) -> Worker:
        code_workers = await self._code_workers()
        try:
            with anyio.fail_after(LOAD_SECONDS):
                return await code_workers.take(Load(f"{name}.py", source))
        except TimeoutError:
            raise ToolFailedError(
                f"{name} was not loaded within {LOAD_SECONDS:g} seconds.",
                next_actions=["Do the work inside the function, not at module level."],
            ) from None
        except WorkerEndedError as error:
            raise ToolFailedError(f"{name} was not loaded: its process {error}.") from None


def _key(tool: CreatedTool, context: RequestContext) -> Key:
    """Returns the tool's version and everything that the rights of a call depend on."""
    return tool.owner, tool.digest, context.origin


def _offer_of(draft: Draft, loaded: Loaded | None) -> Message:
    offers = [] if loaded is None else loaded.offers or []
    problems = [
        each.text if each.line is None else f"line {each.line}: {each.text}"
        for each in ([] if loaded is None else loaded.problems)
    ]
    found = [(each.get("kind"), each.get("name")) for each in offers]
    if not problems and found != [("tool", draft.function)]:
        problems = [f"it loaded as {len(offers)} tools instead of only {draft.function}"]
    if problems:
        raise InvalidArgumentsError(
            f"implementation: {'; '.join(problems)}",
            next_actions=["Send the source with that changed."],
        )
    return offers[0]


def _with_notes(result: ToolResult, notes: list[str]) -> ToolResult:
    """Adds notes for the caller to a result, before text that may be cut."""
    if result.is_error:
        failure = ToolFailure.model_validate(result.structured)
        failure.message = "\n".join([failure.message, *notes])
        return replace(result, structured=failure.model_dump(mode="json"), text=failure.to_text())
    if not notes:
        return result
    text = "\n".join([*notes, result.text])
    return replace(result, text=text, blocks=(*notes, *result.blocks) if result.blocks else ())

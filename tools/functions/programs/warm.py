"""Warm tools: the processes of created tools, each kept for a while after a call."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import anyio
from pydantic import ValidationError

from storage.catalog.created_tools import CreatedTool
from storage.models import Identity
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError, ToolFailedError
from tools.core.result import ToolFailure, ToolResult, decode_result
from tools.functions.programs.calls import ProgramCalls
from tools.functions.programs.cells import Cells
from tools.functions.programs.drafts import Draft
from tools.functions.workers.messages import Load, Loaded, Message
from tools.functions.workers.worker import Worker, WorkerEndedError

__all__ = ["WarmTools"]

IDLE_SECONDS = 180.0
"""How long a process waits for its next call."""

BUSY_SECONDS = 300.0
"""How long one may work in all: what it may use of a processor is counted from its start."""

MOST_WARM = 8
"""Processes that wait at once; the one that has waited longest gives way."""

MOST_CALLS = 100
"""Calls of other tools that one call may make."""

LOAD_SECONDS = 20.0
"""How long the source may take to be loaded."""

_logger = logging.getLogger("toolcrib")

Key = tuple[str, str, Identity]


@dataclass(slots=True)
class _Warm:
    """One process.

    Attributes:
        worker: The process; None until it is there.
        users: How many calls are using it.
        busy: Seconds that calls have taken.
        used: When the last of them ended.
        starting: Held while it is started.
    """

    worker: Worker | None = None
    users: int = 0
    busy: float = 0.0
    used: float = field(default_factory=time.monotonic)
    starting: anyio.Lock = field(default_factory=anyio.Lock)


class Converted:
    """A draft that is loaded.

    Attributes:
        sent: What its process says of the tool that it is.
        is_kept: Whether its process waits for calls of that tool.
    """

    def __init__(self, warm: WarmTools, worker: Worker, sent: Mapping[str, Any]) -> None:
        self.sent = sent
        self.is_kept = False
        self._warm = warm
        self._worker = worker

    def keep(self, tool: CreatedTool) -> None:
        """Has the process wait for calls of the tool that was made of the draft."""
        self.is_kept = self._warm.put(tool, self._worker)


class WarmTools:
    """Runs created tools: each version for each identity in a confined process of its own.

    Args:
        cells: Gives the processes.
    """

    def __init__(self, cells: Callable[[], Awaitable[Cells]]) -> None:
        self._cells = cells
        self._warm: dict[Key, _Warm] = {}

    @asynccontextmanager
    async def converted(self, name: str, draft: Draft) -> AsyncIterator[Converted]:
        """Loads a draft; its process ends with the block, unless it is kept for the tool.

        Raises:
            InvalidArgumentsError: If it cannot be loaded, or is not one tool.
            UnavailableError: If no process can be started.
        """
        worker = await self._load(name, draft.source)
        is_kept = False
        try:
            made = Converted(self, worker, _offer_of(draft, worker.loaded))
            yield made
            is_kept = made.is_kept
        finally:
            if not is_kept:
                await worker.aclose()

    async def call(
        self, tool: CreatedTool, arguments: Mapping[str, Any], context: RequestContext
    ) -> ToolResult:
        """Runs a tool.

        Raises:
            ToolFailedError: If its process ended, or said what no tool says.
            UnavailableError: If no process can be started.
        """
        asked = {"key": ("tool", tool.definition["function"]), "arguments": arguments}
        calls = ProgramCalls(MOST_CALLS)
        async with self._worker(tool, context.identity) as worker:
            try:
                with context.looping(tool.digest, calls.remaining) as (looping, _):
                    result = decode_result(await worker.call(asked, calls.within(looping)))
                if result.is_error:
                    ToolFailure.model_validate(result.structured)
            except WorkerEndedError as error:
                raise ToolFailedError(
                    f"{tool.name} did not finish: its process {error}.",
                    next_actions=["Ask for less in one call, or create it anew without that."],
                ) from None  # it is in the log
            except (KeyError, TypeError, ValueError, ValidationError) as error:
                worker.retire()
                raise ToolFailedError(f"{tool.name} answered what no tool does.") from error
            return result

    def put(self, tool: CreatedTool, worker: Worker) -> bool:
        """Has a process that has loaded a tool wait for its calls; False where another does."""
        warm = self._warm.setdefault((tool.owner, tool.digest, tool.identity), _Warm())
        if warm.worker is not None:
            return False
        warm.worker = worker
        return True

    async def sweep(self) -> None:
        """Ends the processes that nobody has used for a while."""
        limit = time.monotonic() - IDLE_SECONDS
        for key, warm in list(self._warm.items()):
            if not warm.users and warm.used < limit:
                await self._drop(key)

    @asynccontextmanager
    async def _worker(self, tool: CreatedTool, identity: Identity) -> AsyncIterator[Worker]:
        key = tool.owner, tool.digest, identity
        warm = self._warm.setdefault(key, _Warm())
        warm.users += 1
        began = time.monotonic()
        try:
            async with warm.starting:
                if warm.worker is None or warm.worker.retired:
                    warm.worker, warm.busy = await self._load(tool.name, tool.source), 0.0
            yield warm.worker
        except BaseException:  # what a call has left behind that was given up is not for the next
            if self._warm.get(key) is warm:
                del self._warm[key]
            raise
        finally:
            warm.users -= 1
            warm.used = time.monotonic()
            warm.busy += warm.used - began
            with anyio.CancelScope(shield=True):
                await self._tidy(key, warm)

    async def _tidy(self, key: Key, warm: _Warm) -> None:
        """Ends what is of no more use, and what has waited longest where too many wait."""
        if not warm.users and (self._warm.get(key) is not warm or warm.busy > BUSY_SECONDS):
            self._warm = {at: each for at, each in self._warm.items() if each is not warm}
            await _end(warm)
        waiting = [(each.used, at) for at, each in self._warm.items() if not each.users]
        for _, oldest in sorted(waiting, key=itemgetter(0))[:-MOST_WARM]:
            await self._drop(oldest)

    async def _drop(self, key: Key) -> None:
        if (warm := self._warm.pop(key, None)) is not None:
            await _end(warm)

    async def _load(self, name: str, source: str) -> Worker:
        cells = await self._cells()
        try:
            with anyio.fail_after(LOAD_SECONDS):
                return await cells.take(Load(f"{name}.py", source))
        except TimeoutError:
            raise ToolFailedError(
                f"{name} was not loaded within {LOAD_SECONDS:g} seconds.",
                next_actions=["Do the work in the function, and nothing where it is defined."],
            ) from None
        except WorkerEndedError as error:
            raise ToolFailedError(f"{name} was not loaded: its process {error}.") from None


async def _end(warm: _Warm) -> None:
    if warm.worker is not None and not warm.worker.retired:
        await warm.worker.aclose()


def _offer_of(draft: Draft, loaded: Loaded | None) -> Message:
    offers = [] if loaded is None else loaded.offers or []
    problems = [] if loaded is None else [_at(each.line, each.text) for each in loaded.problems]
    found = [(each.get("kind"), each.get("name")) for each in offers]
    if not problems and found != [("tool", draft.function)]:
        problems = [f"it loaded as {len(offers)} tools, and not as {draft.function} alone"]
    if problems:
        raise InvalidArgumentsError(
            f"implementation: {'; '.join(problems)}",
            next_actions=["Send the source with that changed."],
        )
    return offers[0]


def _at(line: int | None, text: str) -> str:
    return text if line is None else f"line {line}: {text}"

"""Makes calls within calls: in parallel, repeatedly, or in the background of their request.

A call that waits for its client's answers is repeated as a whole (`tools.core.client`). Nested
calls that already have a result are not repeated: their results are kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Generic, TypeVar

import anyio

from storage.models import Identity
from tools.core.client import digest_of
from tools.core.errors import UnavailableError
from tools.core.result import ToolResult

MadeT = TypeVar("MadeT")
OutcomeT = TypeVar("OutcomeT")

Made = tuple[ToolResult, bool]
"""The result of a call, and whether it is final; otherwise the call will be repeated."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a batch."""

    name: str
    arguments: Mapping[str, Any]


class Repetition:
    """The results of nested calls from earlier runs of the same call.

    Args:
        finished: The results by call name; new results are added to it.
    """

    def __init__(self, finished: MutableMapping[str, ToolResult]) -> None:
        self._finished = finished
        self._made: Counter[str] = Counter()

    def begin(self, tool: str, arguments: Mapping[str, Any], identity: Identity) -> str:
        """Returns a name for a nested call; the same calls get the same names in each run."""
        digest = digest_of(tool, arguments, identity)
        self._made[digest] += 1
        return f"{digest}.{self._made[digest]}"

    def result_of(self, name: str) -> ToolResult | None:
        """Returns the earlier result, or None if the call must be made."""
        return self._finished.get(name)

    def finish(self, name: str, result: ToolResult) -> None:
        """Stores the result of a nested call."""
        self._finished[name] = result


class Background(Generic[OutcomeT]):
    """Work that continues whether or not a client waits for it."""

    def __init__(self) -> None:
        self.ended = anyio.Event()  # set once it has ended
        # Its outcome; None while it works, and if it failed or was cancelled.
        self.outcome: OutcomeT | None = None
        self.error: Exception | None = None  # the exception that it failed with
        self._scope = anyio.CancelScope()

    async def run(self, work: Callable[[], Awaitable[OutcomeT]]) -> None:
        """Does the work, and keeps its outcome."""
        try:
            with self._scope:
                self.outcome = await work()
        except Exception as error:  # noqa: BLE001  # it is raised where the outcome is awaited
            self.error = error
        finally:
            self.ended.set()
            self.wake()

    def cancel(self) -> None:
        """Cancels the work and everything it started."""
        self._scope.cancel()

    def wake(self) -> None:
        """Wakes those who wait for news."""


async def run_batch(
    calls: Sequence[ToolCall],
    writes: Callable[[ToolCall], bool],
    make: Callable[[ToolCall], Awaitable[Made]],
) -> list[ToolResult]:
    """Makes several calls and returns their results in the same order.

    Adjacent reads run in parallel. A call that writes, or may write by running something, runs
    alone, so that later calls see its effects. If a call waits for the client's answer, the client
    repeats the whole batch, and the calls after it are not made.
    """
    results: list[ToolResult] = []
    for batch in _batches(calls, writes):
        made = await side_by_side(batch, make)
        results += [result for result, _ in made]
        if not all(is_final for _, is_final in made):
            return results + [_NOT_YET] * (len(calls) - len(results))
    return results


_NOT_YET = ToolResult.failure(UnavailableError("An earlier call is waiting for an answer."))


def _batches(
    calls: Sequence[ToolCall], writes: Callable[[ToolCall], bool]
) -> Iterator[list[ToolCall]]:
    for alone, neighbours in groupby(calls, writes):
        together = list(neighbours)
        yield from ([call] for call in together) if alone else [together]


async def side_by_side(
    calls: Sequence[ToolCall], make: Callable[[ToolCall], Awaitable[MadeT]]
) -> list[MadeT]:
    """Makes several calls in parallel and returns their outcomes in order."""
    results: dict[int, MadeT] = {}

    async def run(position: int, call: ToolCall) -> None:
        results[position] = await make(call)

    async with anyio.create_task_group() as group:
        for position, call in enumerate(calls):
            group.start_soon(run, position, call)
    return [results[position] for position in range(len(calls))]

"""Nested calls: those that a call makes, several at once or again.

A call that waits for answers of its client is made again as a whole (`tools.core.client`). The
calls that it made and that were answered before are not: their results are kept meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

import anyio

from storage.models import Identity
from tools.core.client import digest_of
from tools.core.errors import UnavailableError
from tools.core.result import ToolResult

MadeT = TypeVar("MadeT")

Made = tuple[ToolResult, bool]
"""The result of a call, and whether it is the last word: else the call comes again."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a batch.

    Attributes:
        name: Name or alias of the tool.
        arguments: Raw arguments, as the caller gave them.
    """

    name: str
    arguments: Mapping[str, Any]


class Repetition:
    """What the calls that a call makes came to when it was made before.

    Args:
        finished: Their results, by their names; what is finished now comes in as well.
    """

    def __init__(self, finished: MutableMapping[str, ToolResult]) -> None:
        self._finished = finished
        self._made: Counter[str] = Counter()

    def begin(self, tool: str, arguments: Mapping[str, Any], identity: Identity) -> str:
        """Names a call within the call: the same each time that the same calls are made."""
        digest = digest_of(tool, arguments, identity)
        self._made[digest] += 1
        return f"{digest}.{self._made[digest]}"

    def result_of(self, name: str) -> ToolResult | None:
        """What it came to before; None if it was not made, or has to be made again."""
        return self._finished.get(name)

    def finish(self, name: str, result: ToolResult) -> None:
        """Keeps what it came to."""
        self._finished[name] = result


async def run_batch(
    calls: Sequence[ToolCall],
    writes: Callable[[ToolCall], bool],
    make: Callable[[ToolCall], Awaitable[Made]],
) -> list[ToolResult]:
    """Makes several calls and returns one result a call, in the order of the calls.

    Neighbouring reads run side by side; what writes, or may write by running something, waits for
    all before it and holds up all after it, so that a later call sees what an earlier one wrote.
    Where a call waits for an answer of the client, which then makes the whole batch again, nothing
    after it is made.
    """
    results: list[ToolResult] = []
    for batch in _batches(calls, writes):
        made = await side_by_side(batch, make)
        results += [result for result, _ in made]
        if not all(is_final for _, is_final in made):
            return results + [_NOT_YET] * (len(calls) - len(results))
    return results


_NOT_YET = ToolResult.failure(UnavailableError("A call before this one waits for an answer."))


def _batches(
    calls: Sequence[ToolCall], writes: Callable[[ToolCall], bool]
) -> Iterator[list[ToolCall]]:
    """What is made at once: each write alone, and neighbouring reads together."""
    for alone, neighbours in groupby(calls, writes):
        together = list(neighbours)
        yield from ([call] for call in together) if alone else [together]


async def side_by_side(
    calls: Sequence[ToolCall], make: Callable[[ToolCall], Awaitable[MadeT]]
) -> list[MadeT]:
    """Makes several calls at once, and returns what each came to, in their order."""
    results: dict[int, MadeT] = {}

    async def run(position: int, call: ToolCall) -> None:
        results[position] = await make(call)

    async with anyio.create_task_group() as group:
        for position, call in enumerate(calls):
            group.start_soon(run, position, call)
    return [results[position] for position in range(len(calls))]

"""Repetition: a call that its client makes again, with answers to what it was asked.

It goes its whole way again (`tools.core.sampling`). The calls that it made and that were answered
before are not made twice: their results are kept meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, MutableMapping
from typing import Any

from storage.models import Identity
from tools.core.approval import digest_of
from tools.core.result import ToolResult

__all__ = ["Repetition"]


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

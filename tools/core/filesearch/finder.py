"""ripgrep beside the walk: it starts at once, by what the last walk told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import anyio

from tools.core.filesearch.conversation import Answer
from tools.core.filesearch.place import SearchPlace
from tools.core.filesearch.ripgrep import Ripgrep

__all__ = ["Finder", "Scope"]

T = TypeVar("T")

MAX_KNOWN = 64
"""Places of which it is remembered what is left out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which files are searched.

    Attributes:
        path: A directory, or one file, relative to the root.
        names: Pattern of their paths, relative to that directory; empty for all.
        include_ignored: Whether those that git leaves out are searched too.
    """

    path: str = "."
    names: str = ""
    include_ignored: bool = False


class Finder:
    """Finds the files that are worth reading while the tree is walked.

    What git leaves out, such as node_modules, ripgrep is told, since its own reading of ignore
    rules is another than git's. Which directories that are is only known after the walk; the
    last one's are told meanwhile, and if one of them has come back, ripgrep is asked again.

    Args:
        ripgrep: Says in which files something can match.
    """

    def __init__(self, ripgrep: Ripgrep) -> None:
        self._ripgrep = ripgrep
        self._left_out: dict[tuple[str, str, bool], frozenset[str]] = {}

    async def is_there(self) -> bool:
        """Whether ripgrep can be used."""
        return await self._ripgrep.is_there()

    async def find(
        self,
        walk: Callable[[], Awaitable[Answer]],
        pattern: str,
        place: SearchPlace,
        scope: Scope,
    ) -> tuple[Answer, list[str] | None]:
        """Walks and searches.

        Args:
            walk: Walks, and tells what was left out.
            pattern: What `narrowed` made.
            place: Where to search.
            scope: Which files.

        Returns:
            What the walk told, and the files worth reading; None for all.
        """
        candidates: list[str] | None = None

        async def find(left_out: frozenset[str]) -> None:
            nonlocal candidates
            root = place.sandbox.root
            candidates = await self._ripgrep.candidates(
                pattern, root, place.prefix, scope.names, left_out
            )

        key = (str(place.sandbox.root), place.prefix, scope.include_ignored)
        told = self._left_out.get(key)
        tree = await (walk() if told is None else _beside(partial(find, told), walk))
        left_out = frozenset((*tree["left_out"], *tree["unreadable"]))
        if told is None or not told <= left_out:
            await find(left_out)
        if len(self._left_out) >= MAX_KNOWN:
            self._left_out.clear()
        self._left_out[key] = left_out
        return tree, candidates


async def _beside(
    other: Callable[[], Coroutine[Any, Any, None]], main: Callable[[], Awaitable[T]]
) -> T:
    """What one gives while another runs; only the errors of the first count as its own."""
    result: list[T] = []
    failed: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(other)
        try:
            result.append(await main())
        except Exception as error:  # noqa: BLE001  # raised below, outside of the group
            failed = error
            group.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return result[0]

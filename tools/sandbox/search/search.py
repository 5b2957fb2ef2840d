"""The one search among files, in worker processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio
from anyio import to_thread

from tools.core.errors import DeadlineError, InvalidArgumentsError
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.search.conversation import Conversation, Found
from tools.sandbox.search.glob import path_regex
from tools.sandbox.search.place import Scope, open_place
from tools.sandbox.search.workers import Workers

__all__ = ["FileSearch"]

DEADLINE = 20.0
"""Seconds that one search may take."""


class FileSearch:
    """Searches among the files beneath the root of a sandbox, in a process of its own.

    The worker opens one name at a time and follows no link.

    Args:
        deadline: Seconds that one search may take.
    """

    def __init__(self, *, deadline: float = DEADLINE) -> None:
        self._deadline = deadline
        self._workers = Workers()

    async def glob(self, sandbox: Sandbox, scope: Scope, *, limit: int) -> Found:
        """Files and links by their paths, the newest first.

        Raises:
            InvalidArgumentsError: If the pattern is malformed, or the path no directory or file.
            DeadlineError: If it takes too long.
            ToolError: As the methods of Sandbox.
        """
        names = path_regex(scope.names)

        async def search(conversation: Conversation) -> Found:
            told = await conversation.begin(
                "glob", limit=limit, include_ignored=scope.include_ignored, names=names
            )
            return await conversation.collect(told, limit)

        return await self._run(sandbox, scope.path, scope.names, search)

    async def grep(
        self,
        sandbox: Sandbox,
        pattern: str,
        scope: Scope,
        *,
        ignore_case: bool = False,
        context: int = 0,
        limit: int,
    ) -> Found:
        """Lines in which a pattern fits, in the order of their files.

        Args:
            sandbox: Whose files they are.
            pattern: As Python's `re` has it; it sees one line at a time, without its end.
            scope: Which files.
            ignore_case: Whether case is ignored.
            context: Lines before and after each that are shown.
            limit: Lines at most.

        Raises:
            InvalidArgumentsError: If a pattern is malformed, or the path no directory or file.
            DeadlineError: If it takes too long.
            ToolError: As the methods of Sandbox.
        """
        names = path_regex(scope.names or "**")

        async def search(conversation: Conversation) -> Found:
            told = await conversation.begin(
                "grep",
                limit=limit,
                include_ignored=scope.include_ignored,
                pattern=pattern,
                names=names,
                context=context,
                ignore_case=ignore_case,
            )
            if "malformed" in told:
                raise _malformed(pattern, told["malformed"], told["position"])
            return await conversation.collect(told, limit)

        return await self._run(sandbox, scope.path, pattern, search)

    async def rank(
        self, sandbox: Sandbox, words: Sequence[str], scope: Scope, *, limit: int
    ) -> Found:
        """Files by plain words in their names and lines, the best first.

        Args:
            sandbox: Whose files they are.
            words: How each word begins.
            scope: Which files.
            limit: Files at most.

        Raises:
            InvalidArgumentsError: If the pattern of paths is malformed, or the path no directory
                or file.
            DeadlineError: If it takes too long.
            ToolError: As the methods of Sandbox.
        """
        names = path_regex(scope.names or "**")

        async def search(conversation: Conversation) -> Found:
            told = await conversation.begin(
                "rank",
                limit=limit,
                include_ignored=scope.include_ignored,
                words=list(words),
                names=names,
            )
            return await conversation.collect(told, limit)

        return await self._run(sandbox, scope.path, " ".join(words), search)

    async def aclose(self) -> None:
        """Ends the worker that waits for the next search."""
        await self._workers.aclose()

    async def _run(
        self,
        sandbox: Sandbox,
        path: str,
        what: str,
        search: Callable[[Conversation], Awaitable[Found]],
    ) -> Found:
        place = await to_thread.run_sync(open_place, sandbox, path)
        try:
            async with self._workers.lent() as worker:
                with anyio.move_on_after(self._deadline):
                    return await search(Conversation(worker, place, self._deadline))
        finally:
            place.close()
        raise DeadlineError(
            f"The search for {what!r} did not finish within {self._deadline:g} seconds and was "
            "stopped.",
            next_actions=[
                "Give a smaller path or a file pattern.",
                "Give a simpler pattern: repetitions in repetitions, as (a+)+, may take for ever.",
            ],
        )


def _malformed(pattern: str, why: str, position: int | None) -> InvalidArgumentsError:
    where = "" if position is None else f" at position {position}"
    return InvalidArgumentsError(
        f"The pattern {pattern!r} is no regular expression: {why}{where}.",
        next_actions=["Put a backslash before what is meant as it is: \\( \\[ \\{ \\*."],
    )

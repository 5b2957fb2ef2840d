"""One search as a conversation with the worker: open, ask, take results page by page."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from anyio import to_thread

from tools.core.errors import InternalError, UnavailableError
from tools.sandbox.files.sandbox_errors import explained
from tools.sandbox.search.place import SearchPlace
from tools.sandbox.search.workers import WorkerEndedError, WorkerProcess

__all__ = ["Answer", "Conversation", "Found"]

Answer = dict[str, Any]
"""One object of JSON."""

MAX_CHARACTERS = 200_000
"""Characters of one answer, about."""

PAGE = 250
"""Results that are taken from the worker at once."""

MAX_TOLD = 20
"""Unreadable or too large files that are named."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found.

    Attributes:
        items: The results; `path` in each is relative to the root.
        files: How many files were looked at, or have the name that was asked for.
        truncated: Whether there is more.
        unreadable: What could not be opened; the first of it.
        large: Files that are too large to be searched; the first of them.
    """

    items: list[Answer]
    files: int
    truncated: bool
    unreadable: list[str]
    large: list[str]


class Conversation:
    """One search.

    Args:
        worker: The worker, which is nobody else's meanwhile.
        place: Where to search.
        seconds: Seconds that it may take.
    """

    def __init__(self, worker: WorkerProcess, place: SearchPlace, seconds: float) -> None:
        self.place = place
        self._worker = worker
        self._seconds = seconds

    async def begin(
        self,
        operation: str,
        *,
        limit: int,
        include_ignored: bool,
        **arguments: Any,  # noqa: ANN401  # JSON of any kind
    ) -> Answer:
        """Hands the place over, has it walked and searched, and takes the first results.

        Args:
            operation: What to do, as `tools.sandbox.search.worker` names it.
            limit: Results at most.
            include_ignored: Whether what git leaves out is searched too.
            **arguments: What the operation takes.

        Raises:
            ToolError: If it cannot be read.
        """
        place = {
            "prefix": self.place.prefix,
            "name": self.place.name,
            "closed": sorted(self.place.sandbox.closed()),
            "include_ignored": include_ignored,
        }
        count = _page_size(limit)
        return await self.ask(operation, fds=self.place.fds, place=place, count=count, **arguments)

    async def ask(self, operation: str, *, fds: tuple[int, ...] = (), **arguments: Any) -> Answer:  # noqa: ANN401  # JSON of any kind
        """What the worker answers.

        Raises:
            ToolError: If it could not do it.
        """
        try:
            answer = await self._worker.ask(operation, seconds=self._seconds, fds=fds, **arguments)
        except WorkerEndedError as error:
            raise InternalError(
                "The process that searches among files ended.",
                next_actions=["Search again, in a smaller path or with a simpler pattern."],
            ) from error
        if "errno" in answer:
            with explained(self.place.asked, self.place.sandbox.root):
                raise OSError(answer["errno"], os.strerror(answer["errno"]))
        if "exhausted" in answer:
            raise UnavailableError(
                "The search needs more memory than its process may have.",
                next_actions=["Give a smaller path or a file pattern."],
            )
        return answer

    async def collect(self, told: Answer, limit: int) -> Found:
        """Takes results until they are enough, without those that are hidden.

        Args:
            told: What `begin` answered.
            limit: Results at most.
        """
        items: list[Answer] = []
        page, characters = told, 0
        while True:
            for item in await self._shown(page["items"]):
                characters += _characters(item)
                if characters <= MAX_CHARACTERS or not items:
                    items.append(item)
            if len(items) > limit or characters > MAX_CHARACTERS or page["is_last"]:
                break
            page = await self.ask("more", count=_page_size(limit - len(items)))
        is_cut = len(items) > limit or characters > MAX_CHARACTERS
        return Found(
            items[:limit],
            told["files"],
            is_cut or page["truncated"],
            await self._told(page["unreadable"]),
            await self._told(page["large"]),
        )

    async def _shown(self, items: list[Answer]) -> list[Answer]:
        paths = {item["path"] for item in items}
        shown = await to_thread.run_sync(self.place.shown, paths) if paths else paths
        beneath = self.place.beneath_root
        return [item | {"path": beneath(item["path"])} for item in items if item["path"] in shown]

    async def _told(self, paths: list[str]) -> list[str]:
        found = await self._shown([{"path": path} for path in paths[:MAX_TOLD]])
        return [each["path"] for each in found]


def _page_size(limit: int) -> int:
    """How many results are taken from the worker at once; one more than wanted tells of others."""
    return min(PAGE, limit + 1)


def _characters(item: Answer) -> int:
    """About how long a result is."""
    return sum(
        len(value) if isinstance(value, str) else sum(len(str(each)) for each in value)
        for value in item.values()
        if isinstance(value, (str, list))
    )

"""The machine: what the scope system is granted, each part made when it is first used."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any

import anyio.to_thread

if TYPE_CHECKING:
    from tools.sandbox.processes.jobs import Jobs
    from tools.sandbox.processes.processes import Processes
    from tools.sandbox.search.search import FileSearch
    from tools.sandbox.web.client import WebClient
    from tools.sandbox.web.search.search import WebSearch

__all__ = ["Machine", "first_use"]

_making = RLock()
"""From Python 3.12 on a cached property would be made twice by two who use it first at once."""


class Machine:
    """Processes, the web and its search engines.

    Args:
        processes: Makes what starts programs.
        web: Makes the client of every request.
        search: Makes the way to the search engines.
    """

    def __init__(
        self,
        *,
        processes: Callable[[], Processes],
        web: Callable[[], WebClient],
        search: Callable[[], WebSearch],
    ) -> None:
        self._make_processes = processes
        self._make_web = web
        self._make_search = search

    @cached_property
    def processes(self) -> Processes:
        """Starts programs, confined as the settings require."""
        return self._make_processes()

    @cached_property
    def jobs(self) -> Jobs:
        """Programs that run in the background, until they end or the server does."""
        from tools.sandbox.processes.jobs import Jobs

        return Jobs(self.processes)

    @cached_property
    def file_search(self) -> FileSearch:
        """Searches among files, with a program of its own."""
        from tools.sandbox.search.search import FileSearch

        return FileSearch(self.processes)

    @cached_property
    def web(self) -> WebClient:
        """Makes requests, judged at the socket."""
        return self._make_web()

    @cached_property
    def search(self) -> WebSearch:
        """Asks the search engines of the settings."""
        return self._make_search()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Ends whatever was started, when the block does."""
        try:
            yield
        finally:
            made = vars(self)
            for name in ("jobs", "file_search", "processes", "search", "web"):
                if name in made:
                    await made.pop(name).aclose()


async def first_use(owner: object, name: str) -> Any:  # noqa: ANN401  # a part of any type
    """The value of a cached property, made in a thread where it is not there yet.

    Args:
        owner: Whose property it is.
        name: Name of the property.
    """
    if name not in vars(owner):
        await anyio.to_thread.run_sync(_make, owner, name)
    return getattr(owner, name)


def _make(owner: object, name: str) -> None:
    with _making:
        getattr(owner, name)

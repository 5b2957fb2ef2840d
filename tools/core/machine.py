"""The machine: what the scope system is granted, each part made when it is first used."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tools.sandbox.processes.jobs import Jobs
    from tools.sandbox.processes.processes import Processes
    from tools.sandbox.search.search import FileSearch
    from tools.sandbox.web.client import WebClient
    from tools.sandbox.web.search.search import WebSearch

__all__ = ["Machine"]


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
        from tools.sandbox.processes.jobs import Jobs  # noqa: PLC0415  # imported on first use

        return Jobs(self.processes)

    @cached_property
    def file_search(self) -> FileSearch:
        """Searches among files, with a program of its own."""
        from tools.sandbox.search.search import FileSearch  # noqa: PLC0415  # the same

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

"""The machine: what reaches beyond files, each part made when it is first used."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

import anyio.to_thread

from storage.locks import made_once
from tools.core.errors import PermissionDeniedError, UnavailableError

if TYPE_CHECKING:  # the processes of function files start without these
    from tools.functions.programs.last_programs import LastPrograms
    from tools.sandbox.processes.confinement.denied_paths import DeniedPaths
    from tools.sandbox.processes.jobs import Jobs
    from tools.sandbox.processes.processes import Processes
    from tools.sandbox.search.search import FileSearch
    from tools.sandbox.web.client import WebClient
    from tools.sandbox.web.search.search import WebSearch

_ON_ROOT = frozenset({"processes", "jobs", "data", "file_search"})


class Closing(Protocol):
    """What ends when the machine does."""

    async def aclose(self) -> None:
        """Ends it."""


class Confining(Closing, Protocol):
    """What starts programs, confined as far as can be."""

    async def is_confined(self) -> bool:
        """Returns whether every program that runs is confined."""

    async def is_offline(self) -> bool:
        """Returns whether every program that runs is confined, and reaches no host."""

    async def denied(self) -> DeniedPaths:
        """Returns what rules deny to a program that is started now, and which are not enforced."""


def _no_agents() -> object:
    raise UnavailableError("Nothing can be delegated here.")


def _none_created() -> object:
    raise UnavailableError("No tools can be created here.")


def _no_data() -> Closing:
    raise UnavailableError("No recipes can be run here.")


class Machine:
    """Processes, the web and its search engines; each part is made when it is first used.

    Args:
        processes: Makes what starts programs.
        web: Makes the client of every request.
        search: Makes the way to the search engines.
        cells: Makes what runs what agents wrote, of which no more is known here; see
            `tools.functions.programs.cells.cells_of`.
        agents: Makes what gives work to agents, of which nothing is known here; see
            `tools.agent.agents.agents.Agents`.
        created: Makes what keeps the tools that agents wrote, of which nothing is known here; see
            `tools.functions.programs.created.created_of`.
        data: Makes what runs recipes, of which no more is known here; see
            `tools.data.running.workers.workers_of`.
    """

    def __init__(
        self,
        *,
        processes: Callable[[], Processes],
        web: Callable[[], WebClient],
        search: Callable[[], WebSearch],
        cells: Callable[[], Confining],
        agents: Callable[[], object] = _no_agents,
        created: Callable[[], object] = _none_created,
        data: Callable[[], Closing] = _no_data,
    ) -> None:
        self._make_processes = processes
        self._make_web = web
        self._make_search = search
        self._make_cells = cells
        self._make_agents = agents
        self._make_created = created
        self._make_data = data

    @made_once
    def processes(self) -> Processes:
        """Starts programs, confined as the settings require."""
        return self._make_processes()

    @made_once
    def jobs(self) -> Jobs:
        """Programs that run in the background, until they end or the server does."""
        from tools.sandbox.processes.jobs import Jobs

        return Jobs(self.processes)

    @made_once
    def cells(self) -> Confining:
        """Runs programs over tools, and tools that agents wrote, each in a process of its own."""
        return self._make_cells()

    @made_once
    def created(self) -> object:
        """The tools that agents wrote."""
        return self._make_created()

    @made_once
    def data(self) -> Closing:
        """Runs recipes."""
        return self._make_data()

    @made_once
    def last_programs(self) -> LastPrograms:
        """What each session ran well last."""
        from tools.functions.programs.last_programs import LastPrograms

        return LastPrograms()

    @made_once
    def file_search(self) -> FileSearch:
        """Searches among files, with a program of its own."""
        from tools.sandbox.search.search import FileSearch

        return FileSearch()

    @made_once
    def web(self) -> WebClient:
        """Makes requests, judged at the socket."""
        return self._make_web()

    @made_once
    def search(self) -> WebSearch:
        """Asks the search engines of the settings."""
        return self._make_search()

    @made_once
    def agents(self) -> object:
        """Gives work to the agents of the settings."""
        return self._make_agents()

    async def end_session(self, user_id: str, session_id: str) -> None:
        """Ends the programs that a session left running in the background."""
        if "jobs" in vars(self):
            await self.jobs.end_session((user_id, session_id))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Ends whatever was started, when the block does."""
        try:
            yield
        finally:
            made = vars(self)
            for name in ("jobs", "data", "cells", "file_search", "processes", "search", "web"):
                if name in made:
                    await made.pop(name).aclose()


class OffRoot:
    """A machine without the parts that work on the root.

    Args:
        machine: The whole one.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # a part of any type
        if name in _ON_ROOT:
            raise off_root_error()
        return getattr(self._machine, name)


def off_root_error() -> PermissionDeniedError:
    """Returns why a call that is made from a git worktree is given nothing of the root."""
    return PermissionDeniedError(
        "An agent that works in a git worktree is given no files and programs of the root.",
        next_actions=["Work on the files where you were started, with tools of your own."],
    )


async def first_use(owner: object, name: str) -> Any:  # noqa: ANN401  # a part of any type
    """Returns the named attribute of an owner, made in a thread where it is not there yet."""
    if name not in vars(owner):
        return await anyio.to_thread.run_sync(getattr, owner, name)
    return getattr(owner, name)

"""Provides processes, the web and other system access, each created on first use."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

import anyio.to_thread

from storage.locks import made_once
from tools.core.errors import PermissionDeniedError, UnavailableError

if TYPE_CHECKING:  # the processes of function files start without these
    from tools.functions.programs.source_analysis import LastPrograms
    from tools.sandbox.processes.confinement.denied_paths import DeniedPaths
    from tools.sandbox.processes.jobs import Jobs
    from tools.sandbox.processes.processes import Processes
    from tools.sandbox.search.search import FileSearch
    from tools.sandbox.web.client import WebClient
    from tools.sandbox.web.web_search import WebSearch

_ON_ROOT = frozenset({"processes", "jobs", "data", "file_search"})


class Closing(Protocol):
    """A part that is closed with the machine."""

    async def aclose(self) -> None:
        """Closes it."""


class Confining(Closing, Protocol):
    """A part that starts programs, confined as far as possible."""

    async def is_confined(self) -> bool:
        """Returns whether every program is confined."""

    async def is_offline(self) -> bool:
        """Returns whether every program is confined and has no network."""

    async def denied(self) -> DeniedPaths:
        """Returns the paths that rules deny to new programs, and unenforced rules."""


def _no_agents() -> object:
    raise UnavailableError("Delegation is not available here.")


def _none_created() -> object:
    raise UnavailableError("Creating tools is not available here.")


def _no_data() -> Closing:
    raise UnavailableError("Running recipes is not available here.")


class Machine:
    """Processes, the web and its search engines, each created on first use.

    Args:
        code_workers: Creates the runner of code that agents wrote; see
            `tools.functions.programs.code_workers.code_workers_of`.
        agents: Creates the delegation to agents, opaque here; see
            `tools.agent.agents.agents.Agents`.
        created: Creates the store of tools that agents wrote, opaque here; see
            `tools.functions.programs.created.created_of`.
        data: Creates the runner of recipes; see `tools.data.running.workers.workers_of`.
    """

    def __init__(
        self,
        *,
        processes: Callable[[], Processes],
        web: Callable[[], WebClient],
        search: Callable[[], WebSearch],
        code_workers: Callable[[], Confining],
        agents: Callable[[], object] = _no_agents,
        created: Callable[[], object] = _none_created,
        data: Callable[[], Closing] = _no_data,
    ) -> None:
        self._make_processes = processes
        self._make_web = web
        self._make_search = search
        self._make_code_workers = code_workers
        self._make_agents = agents
        self._make_created = created
        self._make_data = data

    @made_once
    def processes(self) -> Processes:
        """Starts programs, confined as the settings require."""
        return self._make_processes()

    @made_once
    def jobs(self) -> Jobs:
        """Runs programs in the background, until they or the server end."""
        from tools.sandbox.processes.jobs import Jobs

        return Jobs(self.processes)

    @made_once
    def code_workers(self) -> Confining:
        """Runs agents' programs and tools, each in its own process."""
        return self._make_code_workers()

    @made_once
    def created(self) -> object:
        """Stores the tools that agents wrote."""
        return self._make_created()

    @made_once
    def data(self) -> Closing:
        """Runs recipes."""
        return self._make_data()

    @made_once
    def last_programs(self) -> LastPrograms:
        """Remembers the last successful program of each session."""
        from tools.functions.programs.source_analysis import LastPrograms

        return LastPrograms()

    @made_once
    def file_search(self) -> FileSearch:
        """Searches among files with a separate program."""
        from tools.sandbox.search.search import FileSearch

        return FileSearch()

    @made_once
    def web(self) -> WebClient:
        """Makes web requests, checked at the socket."""
        return self._make_web()

    @made_once
    def search(self) -> WebSearch:
        """Queries the search engines of the settings."""
        return self._make_search()

    @made_once
    def agents(self) -> object:
        """Delegates work to the agents of the settings."""
        return self._make_agents()

    async def end_session(self, user_id: str, session_id: str) -> None:
        """Ends a session's background programs."""
        if "jobs" in vars(self):
            await self.jobs.end_session((user_id, session_id))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Closes all created parts at the end of the block."""
        try:
            yield
        finally:
            made = vars(self)
            for name in (
                "jobs",
                "data",
                "code_workers",
                "file_search",
                "processes",
                "search",
                "web",
            ):
                if name in made:
                    await made.pop(name).aclose()


class OffRoot:
    """A machine without the parts that work on the root."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # a part of any type
        if name in _ON_ROOT:
            raise off_root_error()
        return getattr(self._machine, name)


def off_root_error() -> PermissionDeniedError:
    """Returns the error for a call from a git worktree that needs the root."""
    return PermissionDeniedError(
        "An agent that works in a git worktree has no access to the root's files and programs.",
        next_actions=["Work on the files where you were started, with tools of your own."],
    )


async def first_use(owner: object, name: str) -> Any:  # noqa: ANN401  # a part of any type
    """Returns an attribute of the owner, creating it in a thread on first use."""
    if name not in vars(owner):
        return await anyio.to_thread.run_sync(getattr, owner, name)
    return getattr(owner, name)

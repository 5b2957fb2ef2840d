"""What a running tool is given besides its arguments."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar, cast

import anyio
from pydantic import Field
from typing_extensions import TypedDict

from storage.models import Identity
from tools.core.asking.asker import Asker, Waiting
from tools.core.asking.deadline import PausableDeadline
from tools.core.asking.peer import Peer
from tools.core.calling.loops import Loop
from tools.core.calling.nested import Repetition
from tools.core.client import Approver, ProgressReporter, Sampler
from tools.core.errors import CallFailedError, PermissionDeniedError, UnavailableError
from tools.core.machine import OffRoot, first_use, off_root_error
from tools.core.toolset import ToolSet

if TYPE_CHECKING:  # the processes of function files start without the store
    from storage.library import Library, Shelf
    from tools.core.calling.nested import ToolCall
    from tools.core.collections import Collections
    from tools.core.jobs.jobs import Jobs
    from tools.core.machine import Machine
    from tools.core.registry import ToolRegistry
    from tools.core.result import ToolResult
    from tools.retrieval.catalogue import Catalogue
    from tools.sandbox.files.sandbox import Sandbox
    from tools.sandbox.history.history import CallHistory
    from tools.sandbox.processes.models import Watch
    from tools.sandbox.search.search import FileSearch

__all__ = ["Calls", "IdentityArguments", "RequestContext", "Work"]

PartT = TypeVar("PartT")
Call = Callable[["RequestContext", str, Mapping[str, Any]], Awaitable["ToolResult"]]
"""Calls a tool by its name, with raw arguments, in the context that the call is to have."""

Batch = Callable[["RequestContext", "Sequence[ToolCall]"], Awaitable["list[ToolResult]"]]
"""Calls several tools in such a context: reads side by side, writes in their order."""

Work = Callable[["RequestContext"], Awaitable["ToolResult"]]


class Carrier(Protocol):
    """Has calls go on while their client is away."""

    def may_last(self, tool: str) -> None:
        """Takes note that a tool runs whose call may be answered with a job."""

    async def carry(
        self, context: RequestContext, name: str, arguments: Mapping[str, Any], work: Work
    ) -> ToolResult:
        """Does the work of what has that name, with those arguments, in a context of its own."""


class IdentityArguments(TypedDict, total=False):
    """Whose context a call is about, where it is not its caller's own.

    A tool takes them as `**identity: Unpack[IdentityArguments]`.
    """

    user_id: Annotated[
        str, Field(min_length=1, max_length=256, description="Whose; default: yours")
    ]
    device_id: Annotated[str, Field(max_length=256, description="Which device")]
    agent_id: Annotated[str, Field(max_length=256, description="Which agent")]


@dataclass(frozen=True, slots=True)
class Calls:
    """What a tool needs to find and call other tools for its caller.

    Attributes:
        catalogue: Every tool there is, and which of them fit a need.
        batch: Calls several, each on the path that every call takes.
        text_budget: Characters of text that one result may have.
        jobs: Those calls that took long; None where none goes on alone.
    """

    catalogue: Catalogue
    batch: Batch
    text_budget: int
    jobs: Jobs | None


async def _report_nothing(_done: float, _total: float | None, _message: str | None) -> None:
    await anyio.lowlevel.checkpoint()


@dataclass(frozen=True, slots=True)
class RequestContext(Asker):
    """One call's identity, its way to report, and what its scope grants.

    A tool receives it by declaring a parameter of this type; the parameter is never in the schema.
    What the tool's scope does not grant raises PermissionDeniedError.

    Attributes:
        identity: Whose call it is.
        report_progress: Reports (done, total, message) to whoever asked, else does nothing.
        bound: Whether the call must not be about anybody else.
        sampler: The way to the client's model; None where the client offers none.
        session_id: The session it belongs to; empty means a session of its own.
        client: Name of the client, as it says it.
        approver: The way to the person at the client; None where the client cannot ask.
        tool_set: The tools that the caller may find and call; None means all.
        relay: The way to the client for other servers (scope mcp); only the server knows its form.
        repetition: Returns the results of the calls that the tool made before; None where its
            client does not make its call again.
        peer: The client, as a function speaks to it.
        carrier: Has a call go on while its client is away; None where it is within one that does.
        tool: The tool that is running; empty before one is.
        depth: How many calls this one is within.
        place: Names it among those that a call makes which comes again; else empty.
        deadline: How long the tool may still take; None before it runs.
        loop: The program that this call, and once it runs those that it makes, are calls of; None
            where there is none.
        accepted: Rules about paths that a person let its programs run without.
    """

    identity: Identity = field(default_factory=Identity)
    report_progress: ProgressReporter = _report_nothing
    _sandbox: Sandbox | None = None
    _closes: Callable[[str], bool] | None = None
    _library: Library | None = None
    _calls: Calls | None = None
    _collections: Collections | None = None
    _machine: Machine | None = None
    _searching: Machine | None = None
    _reach: Callable[[str], bool] | None = None
    _history: CallHistory | None = None
    _call: Call | None = None
    _waiting: Waiting = nullcontext
    bound: bool = field(default=False, kw_only=True)
    sampler: Sampler | None = field(default=None, kw_only=True)
    session_id: str = field(default="", kw_only=True)
    client: str = field(default="", kw_only=True)
    approver: Approver | None = field(default=None, kw_only=True)
    tool_set: ToolSet | None = field(default=None, kw_only=True)
    relay: object | None = field(default=None, kw_only=True)
    repetition: Callable[[], Repetition | None] = field(default=lambda: None, kw_only=True)
    peer: Peer = field(default_factory=Peer, kw_only=True)
    carrier: Carrier | None = field(default=None, kw_only=True)
    tool: str = field(default="", kw_only=True)
    depth: int = field(default=0, kw_only=True)
    place: str = field(default="", kw_only=True)
    deadline: PausableDeadline | None = field(default=None, kw_only=True)
    loop: Loop | None = field(default=None, kw_only=True)
    accepted: frozenset[str] = field(default=frozenset(), kw_only=True)

    @property
    def is_off_root(self) -> bool:
        """Whether an agent makes the call that works in a git worktree."""
        return self.tool_set is not None and self.tool_set.is_off_root

    @property
    def sandbox(self) -> Sandbox:
        """The files beneath the root (every scope but mcp)."""
        self._check_on_root()
        return _granted(self._sandbox, "access to files")

    async def file_search(self) -> FileSearch:
        """Searches among the files beneath the root (scope sandboxed)."""
        self._check_on_root()
        machine = _granted(self._searching, "search among files")
        return cast("FileSearch", await first_use(machine, "file_search"))

    @property
    def machine(self) -> Machine:
        """Processes and the web (scope system)."""
        return _granted(self._machine, "processes and no network")

    def watch(self, *, in_background: bool = False) -> Watch | None:
        """What sees what a program does to files; None where changes are not kept."""
        if self._history is None:
            return None
        return self._history.program(in_background=in_background)

    @property
    def history(self) -> CallHistory:
        """The changes of files that the session made (scope context)."""
        self._check_on_root()
        if self._history is None:
            raise UnavailableError(
                "Changes of files are not kept here, so that none can be undone.",
                next_actions=["Ask the user about the setting undo.enabled."],
            )
        return self._history

    def may_reach(self, url: str) -> bool:
        """Whether no rule of the policy denies this call a URL to which it is redirected."""
        return self._reach is None or self._reach(url)

    @property
    def collections(self) -> Collections:
        """Which sources and directories the settings name (scope context)."""
        return _granted(self._collections, "access to stored context")

    def shelf(self, **identity: str | None) -> Shelf:
        """Returns stored context, bound to whom the call is about (scope context)."""
        library = _granted(self._library, "access to stored context")
        return library.shelf(self.about(**identity), self._closes)

    def about(self, **identity: str | None) -> Identity:
        """Returns whose context the call is about: the caller's own, or whose is named.

        Args:
            identity: The `IdentityArguments` that name another; None names nobody.

        Raises:
            PermissionDeniedError: If the call is bound to its identity and another is named.
        """
        named: dict[str, Any] = {key: value for key, value in identity.items() if value is not None}
        if self.bound:
            self._check_own(named)
        return replace(self.identity, **named)

    @property
    def catalogue(self) -> Catalogue:
        """Every tool there is (scopes context and system)."""
        return self._granted_calls().catalogue

    @property
    def registry(self) -> ToolRegistry:
        """The tools that there are for the caller (scope context)."""
        return self.catalogue.registry.of(self.identity.user_id)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Calls another tool for the same caller, as if the caller did.

        Raises:
            CallFailedError: If that fails; it says why, and what to do next.
        """
        result = await self.result_of(name, arguments)
        if result.is_error:
            raise CallFailedError(name, result.structured)
        return result

    async def result_of(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """What another tool answers to the same caller, a failure too."""
        call = _granted(self._call, "calls to other tools")
        return await call(self._within(), name, arguments)

    async def call_all(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Calls other tools for the same caller: reads side by side, writes in their order."""
        return await self._granted_calls().batch(self._within(), calls)

    @contextmanager
    def looping(
        self, digest: str, remaining: Callable[[], int]
    ) -> Iterator[tuple[RequestContext, Loop]]:
        """The same call as that of a program, about whose calls the person is asked once.

        Until the block ends, calls that are made through this context are calls of the program.

        Args:
            digest: Tells the program from any other.
            remaining: How many calls it may still make, besides those that began.
        """
        if self.loop is not None:  # within another, which ends later
            inner = self.loop.within(digest)
            yield replace(self, loop=inner), inner
            return
        with Loop.of(self.tool, remaining) as loop:
            yield replace(self, loop=loop), loop

    def aside(self) -> AbstractAsyncContextManager[None]:
        """What a tool is in that only waits: its time stands still, and its place is another's."""
        return self._waiting()

    @property
    def jobs(self) -> Jobs:
        """The calls that took long (scope context)."""
        return _granted(self._granted_calls().jobs, "calls that go on alone")

    @property
    def text_budget(self) -> int:
        """Characters of text that all results may have together (scopes context and system)."""
        return self._granted_calls().text_budget

    def granted(
        self,
        *,
        sandbox: Sandbox | None = None,
        library: Library | None = None,
        calls: Calls | None = None,
        collections: Collections | None = None,
        machine: Machine | None = None,
        searching: Machine | None = None,
        reach: Callable[[str], bool] | None = None,
        history: CallHistory | None = None,
        call: Call | None = None,
        accepted: frozenset[str] = frozenset(),
    ) -> RequestContext:
        """The same call with what its scope grants, but for the root to an agent in a worktree."""
        closes = None if sandbox is None else sandbox.closes  # also for an agent in a worktree
        if self.is_off_root:
            sandbox = searching = history = None
            machine = None if machine is None else cast("Machine", OffRoot(machine))
        return replace(
            self,
            _sandbox=sandbox,
            _closes=closes,
            _library=library,
            _calls=calls,
            _collections=collections,
            _machine=machine,
            _searching=searching,
            _reach=reach,
            _history=history,
            _call=call,
            accepted=accepted,
        )

    def running(self, tool: str, deadline: PausableDeadline, waiting: Waiting) -> RequestContext:
        """The same call while it runs.

        Args:
            tool: Which tool runs.
            deadline: How long it may take.
            waiting: What it is in while somebody thinks about its question.
        """
        return replace(self, tool=tool, deadline=deadline, _waiting=waiting)

    def _check_on_root(self) -> None:
        if self.is_off_root:
            raise off_root_error()

    def _within(self) -> RequestContext:
        """The same of a call that the tool makes."""
        return replace(self, depth=self.depth + 1)

    def _granted_calls(self) -> Calls:
        return _granted(self._calls, "calls to other tools")

    def _check_own(self, named: dict[str, str]) -> None:
        """Lets a bound call name itself, and a device or an agent where it has none."""
        for key, value in named.items():
            own = getattr(self.identity, key)
            if value != own and (own or key == "user_id"):
                raise PermissionDeniedError(
                    f"{key}: {value!r} is not yours; this connection is for {own!r} alone.",
                    next_actions=[f"Leave {key} out."],
                )


def _granted(part: PartT | None, what: str) -> PartT:
    if part is None:
        raise PermissionDeniedError(f"This tool's scope grants no {what}.")
    return part

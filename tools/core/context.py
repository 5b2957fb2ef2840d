"""Provides a running tool with its call's context."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TypeVar, cast

import anyio
from pydantic import Field
from typing_extensions import TypedDict

from storage.models import Identity
from tools.core.calling.nested import Repetition
from tools.core.calling.program_approvals import Loop
from tools.core.client import Approver, ProgressReporter, Sampler
from tools.core.elicitation.asker import Asker, Deadline, Peer, Waiting
from tools.core.errors import CallFailedError, PermissionDeniedError, UnavailableError
from tools.core.machine import OffRoot, first_use, off_root_error
from tools.core.toolset import ToolSet

if TYPE_CHECKING:  # the processes of function files start without the store
    from storage.keeping.kept_results import KeptResults
    from storage.library import Library, Shelf
    from tools.core.calling.nested import ToolCall
    from tools.core.collections import Collections
    from tools.core.jobs import Jobs
    from tools.core.machine import Machine
    from tools.core.registry import ToolRegistry
    from tools.core.result import ToolResult
    from tools.retrieval.catalogue import Catalogue
    from tools.sandbox.files.sandbox import Sandbox
    from tools.sandbox.history.history import CallHistory
    from tools.sandbox.processes.models import Watch
    from tools.sandbox.search.search import FileSearch

__all__ = ["Calls", "Grant", "IdentityArguments", "Link", "Origin", "RequestContext", "Work"]

PartT = TypeVar("PartT")
Call = Callable[["RequestContext", str, Mapping[str, Any]], Awaitable["ToolResult"]]
"""Calls a tool by name with raw arguments, in the given context."""

Batch = Callable[["RequestContext", "Sequence[ToolCall]"], Awaitable["list[ToolResult]"]]
"""Calls several tools in the given context: reads in parallel, writes in order."""

Work = Callable[["RequestContext"], Awaitable["ToolResult"]]


class Carrier(Protocol):
    """Keeps a call running after its client disconnects."""

    @property
    def repetition(self) -> Repetition | None:
        """The results of its earlier nested calls; None if its client does not repeat calls."""

    def may_last(self, tool: str) -> None:
        """Records that the running tool's call may be answered with a job."""

    async def carry(
        self, context: RequestContext, name: str, arguments: Mapping[str, Any], work: Work
    ) -> ToolResult:
        """Runs the work of the named tool with these arguments, in a context of its own."""


class IdentityArguments(TypedDict, total=False):
    """Whose context a call is about, if not the caller's own.

    A tool accepts them as `**identity: Unpack[IdentityArguments]`.
    """

    user_id: Annotated[
        str, Field(min_length=1, max_length=256, description="Whose; default: yours")
    ]
    device_id: Annotated[str, Field(max_length=256, description="Which device")]
    agent_id: Annotated[str, Field(max_length=256, description="Which agent")]


@dataclass(frozen=True, slots=True)
class Calls:
    """Access to finding and calling other tools for the caller.

    Attributes:
        catalogue: All tools, searchable by need.
        batch: Makes several calls on the normal call path.
        text_budget: Maximum characters of the running tool's text.
        kept: The large results that are kept; None if none are.
        jobs: The jobs of long calls; None if calls cannot become jobs.
    """

    catalogue: Catalogue
    batch: Batch
    text_budget: int
    kept: KeptResults | None
    jobs: Jobs | None


async def _report_nothing(_done: float, _total: float | None, _message: str | None) -> None:
    await anyio.lowlevel.checkpoint()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a call comes from.

    Attributes:
        identity: The caller.
        bound: Whether the call may only concern its own identity.
        session_id: The session it belongs to; empty means its own session.
        client: The client's name, as reported by the client.
        tool_set: The tools that the caller may find and call; None means all.
    """

    identity: Identity = field(default_factory=Identity)
    bound: bool = False
    session_id: str = ""
    client: str = ""
    tool_set: ToolSet | None = None

    @property
    def is_off_root(self) -> bool:
        """Returns whether an agent that works in a git worktree makes the call."""
        return self.tool_set is not None and self.tool_set.is_off_root


@dataclass(frozen=True, slots=True)
class Link:
    """The way from a call back to its client.

    Attributes:
        report_progress: Reports (done, total, message) to a client that asked for it.
        sampler: Access to the client's model, or None.
        approver: Access to the client's user; None if the client cannot ask.
        peer: The client, as a function sees it.
        relay: Access to the client for other servers (scope mcp); only the server knows its type.
        carrier: Keeps the call running after its client disconnects; None if it is nested in such a
            call.
    """

    report_progress: ProgressReporter = _report_nothing
    sampler: Sampler | None = None
    approver: Approver | None = None
    peer: Peer = field(default_factory=Peer)
    relay: object | None = None
    carrier: Carrier | None = None


@dataclass(frozen=True, slots=True)
class Grant:
    """What a tool's scope lets it use; None denies it.

    Attributes:
        sandbox: The files inside the root.
        searching: The search among them.
        library: The stored context.
        collections: The sources and directories of the settings.
        history: Returns the recorder of file changes; None if none are recorded.
        machine: Processes and the web.
        reach: Returns whether the policy allows a URL to which the call is redirected.
        accepted: Path rules that a user agreed to let its programs run without.
        call: Calls another tool.
        calls: Finds tools, and makes several calls.
    """

    sandbox: Sandbox | None = None
    searching: Machine | None = None
    library: Library | None = None
    collections: Collections | None = None
    history: Callable[[], CallHistory] | None = None
    machine: Machine | None = None
    reach: Callable[[str], bool] | None = None
    accepted: frozenset[str] = frozenset()
    call: Call | None = None
    calls: Calls | None = None


@dataclass(frozen=True, slots=True)
class RequestContext(Asker):
    """One call: where it comes from, the way back to its client, and what its scope grants.

    A tool receives it by declaring a parameter of this type, which is never in the schema. Access
    that the tool's scope does not grant raises PermissionDeniedError.

    Attributes:
        origin: Where it comes from.
        link: The way back to its client.
        grant: What its tool may use.
        tool: The running tool; empty before one runs.
        depth: How many calls this one is nested in.
        place: Its name among the nested calls of a repeatable call, or "".
        deadline: The tool's remaining time; None before it runs.
        loop: The program that this call belongs to, and later the calls it makes; None without a
            program.
    """

    origin: Origin = field(default_factory=Origin)
    link: Link = field(default_factory=Link)
    grant: Grant = field(default_factory=Grant)
    tool: str = field(default="", kw_only=True)
    depth: int = field(default=0, kw_only=True)
    place: str = field(default="", kw_only=True)
    deadline: Deadline | None = field(default=None, kw_only=True)
    loop: Loop | None = field(default=None, kw_only=True)
    _waiting: Waiting = field(default=nullcontext, kw_only=True)

    @property
    def identity(self) -> Identity:
        """The caller."""
        return self.origin.identity

    @property
    def session_id(self) -> str:
        """The session that the call belongs to."""
        return self.origin.session_id

    @property
    def client(self) -> str:
        """The client's name, as reported by the client."""
        return self.origin.client

    @property
    def tool_set(self) -> ToolSet | None:
        """The tools that the caller may find and call; None means all."""
        return self.origin.tool_set

    @property
    def peer(self) -> Peer:
        """The client, as a function sees it."""
        return self.link.peer

    @property
    def sampler(self) -> Sampler | None:
        """Access to the client's model, or None."""
        return self.link.sampler

    @property
    def report_progress(self) -> ProgressReporter:
        """Reports (done, total, message) to a client that asked for it."""
        return self.link.report_progress

    @property
    def sandbox(self) -> Sandbox:
        """The files inside the root (every scope but mcp)."""
        self._check_on_root()
        return _granted(self.grant.sandbox, "access to files")

    async def file_search(self) -> FileSearch:
        """Returns the search among the files inside the root (scope sandboxed)."""
        self._check_on_root()
        machine = _granted(self.grant.searching, "search among files")
        return cast("FileSearch", await first_use(machine, "file_search"))

    @property
    def machine(self) -> Machine:
        """Processes and the web (scope system)."""
        return _granted(self.grant.machine, "processes and no network")

    def watch(self, *, in_background: bool = False) -> Watch | None:
        """Returns the recorder of a program's file changes, or None if none are recorded."""
        if self.grant.history is None:
            return None
        return self.grant.history().program(in_background=in_background)

    @property
    def history(self) -> CallHistory:
        """The file changes of the session (scope context)."""
        self._check_on_root()
        if self.grant.history is None:
            raise UnavailableError(
                "File changes are not recorded here, so they cannot be undone.",
                next_actions=["Ask the user about the setting undo.enabled."],
            )
        return self.grant.history()

    def may_reach(self, url: str) -> bool:
        """Returns whether the policy allows this call a URL to which it is redirected."""
        return self.grant.reach is None or self.grant.reach(url)

    @property
    def collections(self) -> Collections:
        """The sources and directories of the settings (scope context)."""
        return _granted(self.grant.collections, "access to stored context")

    def shelf(self, **identity: str | None) -> Shelf:
        """Returns stored context, bound to the identity the call is about (scope context)."""
        library = _granted(self.grant.library, "access to stored context")
        files = self.grant.sandbox  # also for an agent in a worktree
        return library.shelf(self.about(**identity), None if files is None else files.closes)

    def about(self, **identity: str | None) -> Identity:
        """Returns the identity the call is about: the caller's, or the named one.

        Args:
            identity: The `IdentityArguments`; None keeps the caller's value.

        Raises:
            PermissionDeniedError: If the call is bound to its identity and another is named.
        """
        named: dict[str, Any] = {key: value for key, value in identity.items() if value is not None}
        if self.origin.bound:
            self._check_own(named)
        return replace(self.identity, **named)

    @property
    def catalogue(self) -> Catalogue:
        """All tools (scopes context and system)."""
        return self._granted_calls().catalogue

    @property
    def registry(self) -> ToolRegistry:
        """The tools available to the caller (scope context)."""
        return self.catalogue.registry.of(self.identity.user_id)

    async def call(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Calls another tool for the same caller, as if the caller did.

        Raises:
            CallFailedError: If that fails; the message says why, and what to do next.
        """
        result = await self.result_of(name, arguments)
        if result.is_error:
            raise CallFailedError(name, result.structured)
        return result

    async def result_of(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Calls another tool for the same caller and returns its result, even a failure."""
        call = _granted(self.grant.call, "calls to other tools")
        return await call(replace(self, depth=self.depth + 1), name, arguments)

    async def call_all(self, calls: Sequence[ToolCall]) -> list[ToolResult]:
        """Calls other tools for the same caller: reads in parallel, writes in order."""
        return await self._granted_calls().batch(replace(self, depth=self.depth + 1), calls)

    @contextmanager
    def looping(
        self, digest: str, remaining: Callable[[], int]
    ) -> Iterator[tuple[RequestContext, Loop]]:
        """Makes this call a program's, so that the user is asked once about the program's calls.

        Until the block ends, calls made through the yielded context belong to the program, which
        `digest` identifies. `remaining` returns how many more calls it may begin.
        """
        if self.loop is not None:  # within another, which ends later
            inner = self.loop.within(digest)
            yield replace(self, loop=inner), inner
            return
        with Loop.of(self.tool, remaining) as loop:
            yield replace(self, loop=loop), loop

    def aside(self) -> AbstractAsyncContextManager[None]:
        """Opens a context for a waiting tool, in which its deadline pauses and its slot is free."""
        return self._waiting()

    @property
    def jobs(self) -> Jobs:
        """The jobs of long calls (scope context)."""
        return _granted(self._granted_calls().jobs, "calls that go on alone")

    @property
    def text_budget(self) -> int:
        """Maximum characters of the running tool's text (scopes context and system)."""
        return self._granted_calls().text_budget

    def granted(self, grant: Grant) -> RequestContext:
        """Returns the context with its scope's grant; no root for an agent in a worktree."""
        if self.origin.is_off_root:
            machine = None if grant.machine is None else cast("Machine", OffRoot(grant.machine))
            grant = replace(grant, searching=None, history=None, machine=machine)
        return replace(self, grant=grant)

    def reporting(self, report_progress: ProgressReporter) -> RequestContext:
        """Returns the context with another receiver of progress reports."""
        return replace(self, link=replace(self.link, report_progress=report_progress))

    def running(self, tool: str, deadline: Deadline, waiting: Waiting) -> RequestContext:
        """Returns the context of the running tool; `waiting` is entered for open questions."""
        return replace(self, tool=tool, deadline=deadline, _waiting=waiting)

    def _check_on_root(self) -> None:
        if self.origin.is_off_root:
            raise off_root_error()

    def _granted_calls(self) -> Calls:
        return _granted(self.grant.calls, "calls to other tools")

    def _check_own(self, named: dict[str, str]) -> None:
        """Lets a bound call name itself, and a device or an agent if it has none."""
        for key, value in named.items():
            own = getattr(self.identity, key)
            if value != own and (own or key == "user_id"):
                raise PermissionDeniedError(
                    f"{key}: {value!r} is not yours; this connection only serves {own!r}.",
                    next_actions=[f"Leave {key} out."],
                )


def _granted(part: PartT | None, what: str) -> PartT:
    if part is None:
        raise PermissionDeniedError(f"This tool's scope grants no {what}.")
    return part

"""Connections: one session with another server, kept alive in its own task."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal

import anyio
import mcp_types as types
from anyio.abc import TaskGroup, TaskStatus
from mcp import Client, ClientSession
from mcp.client.session import (
    ElicitationFnT,
    IncomingMessage,
    ListRootsFnT,
    LoggingFnT,
    SamplingFnT,
)
from mcp.client.session import MessageHandlerFnT as MessageHandler
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from server.mcp.elicitation.questions import Answer, Relay
from server.upstream.calling.upstream_tasks import KnowsTasks
from server.upstream.connections.link import Link, SignInRequiredError, problem_of, sign_in_advice
from tools.core.calling.call import PausableDeadline
from tools.core.errors import UpstreamError

LEAVE_SECONDS = 1.0
"""Time for closing a session with a server."""

ENDING_SECONDS = 3.0
"""Time to find out why a connection ended."""

LAST_SECONDS = 0.1
"""Time to read what a server sent before it ended."""

_STAND_INS = frozenset({"Server returned an error response", "Not Found", "Session terminated"})
"""The SDK's messages for HTTP responses that are not MCP."""

Mode = Literal["auto", "legacy"]
"""Whether to negotiate the protocol era, or to assume the older one."""

Listener = Callable[[types.ServerNotification | None], None]
"""Receives a notification; None once the connection has closed."""


@dataclass(frozen=True, eq=False, slots=True)
class Channel:
    """The client of a request, whose deadline pauses while the client is asked."""

    relay: Relay
    deadline: PausableDeadline

    async def ask(self, question: types.InputRequest) -> Answer | None:
        """Returns the client's answer; an error if it fails, None if the client is gone."""
        with self.deadline.paused():
            return await self.relay.ask_one(question)


class Callbacks:
    """Handlers for a server's requests and notifications."""

    elicitation: ElicitationFnT | None = None
    sampling: SamplingFnT | None = None
    roots: ListRootsFnT | None = None
    logging: LoggingFnT | None = None
    message: MessageHandler | None = None  # receives all notifications
    sampling_capabilities: types.SamplingCapability | None = None  # beyond plain sampling
    handshake: bool = False
    """Whether to try the older era first, in which the server can ask and log during a call."""
    level: types.LoggingLevel | None = None  # as last set at the server

    @property
    def outdated(self) -> bool:
        """Whether new handlers for the same conversation would differ."""
        return False

    def during(self, channel: Channel | None) -> AbstractContextManager[None]:  # noqa: ARG002  # nobody is asked
        """Forwards the server's questions through a channel; None rejects them."""
        return nullcontext()


MakeCallbacks = Callable[[str, str], Callbacks]
"""Builds the handlers of a connection from the server's name and the conversation's id."""


class Connection:
    """One session with another server."""

    def __init__(
        self, server: str, session_id: str, link: Link, callbacks: Callbacks, mode: Mode
    ) -> None:
        self.server = server
        self.session_id = session_id
        self.callbacks = callbacks
        self.link = link
        self.listeners: set[Listener] = set()  # keep it in use
        self.observer: Listener | None = None  # does not
        self.closed = anyio.Event()
        self.problem = ""  # why it ended; empty if we closed it
        self.last_used = self._began = time.monotonic()
        self._mode = mode
        self._client: Client | None = None
        self._scope = anyio.CancelScope()
        self._users = 0
        self._retired = False
        self._leaves = False

    @property
    def client(self) -> Client:
        """The open session as the SDK's client."""
        if self._client is None:
            raise RuntimeError("The connection is not open.")
        return self._client

    @property
    def session(self) -> ClientSession:
        """The open session."""
        return self.client.session

    @property
    def is_modern(self) -> bool:
        """Whether the version is of the era without sessions."""
        return self.client.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def is_open(self) -> bool:
        """Whether it can be used."""
        return self._client is not None and not self.link.ended.is_set()

    @property
    def is_busy(self) -> bool:
        """Whether it is in use or has listeners."""
        return self._users > 0 or bool(self.listeners)

    @property
    def lived(self) -> float:
        """Seconds since its creation."""
        return time.monotonic() - self._began

    def sends_headers_of(self, tools: Sequence[types.Tool]) -> None:
        """Enables headers for arguments whose schemas request them (`x-mcp-header`).

        The SDK learns of them only on the connection that lists the tools; here one lists for all.
        """
        listed = types.ListToolsResult(tools=list(tools))
        self.session._absorb_tool_listing(listed, complete=False)  # noqa: SLF001  # no public way

    async def open(self, group: TaskGroup) -> None:
        """Connects; the session then runs in a task of the group until it is closed."""
        async with anyio.create_task_group() as opening:
            opening.start_soon(self._abandon)
            await group.start(self._live)
            opening.cancel_scope.cancel()

    def close(self) -> None:
        """Closes the session; `closed` is set at its end."""
        self._leaves = True
        self.link.ended.set()

    async def retire(self) -> None:
        """Closes the session once it is unused; waits only if it is unused now."""
        self._retired = True
        if not self._users:
            self.close()
            await self.closed.wait()

    @asynccontextmanager
    async def used(self) -> AsyncIterator[Connection]:
        """Keeps it open for a call, and reports why it ended meanwhile."""
        self._users += 1
        try:
            yield self
        except MCPError as error:
            if self.link.sign_in_problem:
                raise SignInRequiredError(
                    f"The server {self.server!r} {self.link.sign_in_problem}.",
                    next_actions=sign_in_advice(self.server),
                ) from error
            if error.code == types.CONNECTION_CLOSED:
                with anyio.move_on_after(ENDING_SECONDS):
                    await self.closed.wait()
                said = self.problem or "ended the connection"
            elif error.error.message in _STAND_INS and (heard := await self.link.explain()):
                said = heard
            else:
                raise
            raise UpstreamError(f"The server {self.server!r} {said.rstrip('.')}.") from error
        finally:
            self._users -= 1
            self.last_used = time.monotonic()
            if self._retired and not self._users:
                self.close()

    async def _abandon(self) -> None:
        """Stops connecting once the link has ended: the SDK's client would wait for an answer."""
        await self.link.ended.wait()
        await anyio.sleep(LAST_SECONDS)
        raise ConnectionError("the connection ended")

    async def _live(self, *, task_status: TaskStatus[None]) -> None:
        try:
            with self._scope:
                async with AsyncExitStack() as stack:
                    self._client = await stack.enter_async_context(self._make_client())
                    task_status.started()
                    await self.link.ended.wait()
                    if not self._leaves:
                        said = (await self.link.explain()).rstrip(".")
                        self.problem = said or "ended the connection"
                    self._scope.deadline = anyio.current_time() + LEAVE_SECONDS
        except Exception as error:
            if self._client is None:
                raise
            if not (self._leaves or self.problem):
                self.problem = await problem_of(error, self.link)
        finally:
            self.link.ended.set()
            self.closed.set()
            self._tell(None)

    async def _hear(self, message: IncomingMessage) -> None:
        if not isinstance(message, Exception):
            self._tell(message)
        if self.callbacks.message is not None:
            await self.callbacks.message(message)

    def _tell(self, notification: types.ServerNotification | None) -> None:
        for listener in (self.observer, *self.listeners):
            if listener is not None:
                listener(notification)

    def _make_client(self) -> Client:
        asked = self.callbacks
        return Client(
            self.link,
            mode=self._mode,
            cache=None,  # listings are cached here
            client_info=types.Implementation(name="toolcrib", version=version("toolcrib")),
            elicitation_callback=asked.elicitation,
            sampling_callback=asked.sampling,
            sampling_capabilities=asked.sampling_capabilities,
            list_roots_callback=asked.roots,
            logging_callback=asked.logging,
            message_handler=self._hear,
            extensions=[KnowsTasks()],
        )

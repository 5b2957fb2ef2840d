"""Upstreams: other servers with their connections and listings."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import anyio
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import x_mcp_header_map
from pydantic import ValidationError

from server.settings.gateway import ServerSettings
from server.upstream.connections.connection import Connection
from server.upstream.connections.failures import problem_of
from server.upstream.connections.health import Backoff, Health, State
from server.upstream.connections.listing import Listing, list_all
from server.upstream.connections.opening import Opener
from tools.core.errors import ToolError, UnavailableError

MOST_CONNECTIONS = 50
"""Maximum connections to one server; the longest idle are closed first."""

IDLE_SECONDS = 1_800.0
"""Idle time after which a conversation's connection is closed."""

_UNLISTED = {
    State.OFF: "was not needed yet",
    State.STARTING: "is being started",
    State.UP: "did not list its offers",
    State.DOWN: "cannot be reached",
}

AnswerT = TypeVar("AnswerT")

_logger = logging.getLogger("toolcrib")


class _Attempt:
    """One attempt to connect, awaited by any number of callers."""

    def __init__(self) -> None:
        self.done = anyio.Event()
        self.connection: Connection | None = None
        self.problem = "is no longer run by this process"


class Upstream:
    """Another server.

    Args:
        name: The name of the server in the settings.
        settings: The settings of the server.
        opener: Opens connections to it.
        home: The conversation of this process.
        command: How the user types `toolcrib`, for advice in error messages.

    Attributes:
        name: The name of the server in the settings.
        settings: The settings of the server.
        listing: What it last offered, perhaps to an earlier process; None before that.
    """

    def __init__(
        self,
        name: str,
        settings: ServerSettings,
        opener: Opener,
        home: str,
        *,
        command: str = "toolcrib",
    ) -> None:
        self.name = name
        self.settings = settings
        self.listing: Listing | None = None
        self._headed: tuple[types.Tool, ...] = ()
        self._opener = opener
        self._home = home
        self._command = command
        self._health = Health()
        self._backoff = Backoff()
        self._group: TaskGroup | None = None
        self._connections: dict[str, Connection] = {}
        self._attempts: dict[str, _Attempt] = {}
        self._opened = anyio.Event()

    @property
    def state(self) -> State:
        """Whether it can be used."""
        return self._health.state

    @property
    def problem(self) -> str:
        """Why it is unreachable, as the rest of a sentence; empty while it is reachable."""
        return self._health.problem

    @property
    def why_unlisted(self) -> str:
        """Why there is no listing, as the rest of a sentence; empty if there is one."""
        return "" if self.listing is not None else self.problem or _UNLISTED[self.state]

    @property
    def since(self) -> float:
        """The start of its state, in Unix seconds."""
        return self._health.since

    @property
    def restarts(self) -> int:
        """How often it came up again after ending by itself."""
        return self._health.restarts

    @property
    def retry_in(self) -> float:
        """Seconds until the next try; 0 if it is due."""
        return self._backoff.remaining

    @property
    def home(self) -> Connection | None:
        """The connection for listings; None if none is open."""
        for session_id in (self._home, *reversed(self._connections)):
            found = self._connections.get(session_id)
            if found is not None and found.is_open:
                return found
        return None

    @property
    def protocol_version(self) -> str:
        """The negotiated protocol version; empty while unreachable."""
        return "" if self.home is None else self.home.protocol_version

    @property
    def capabilities(self) -> types.ServerCapabilities | None:
        """Its capabilities; None while unreachable."""
        return None if self.home is None else self.home.client.server_capabilities

    @property
    def server_info(self) -> types.Implementation | None:
        """Its name and version, as it reports them."""
        return None if self.listing is None else self.listing.server_info

    def run_in(self, group: TaskGroup) -> None:
        """Sets the task group in which its connections run."""
        self._group = group

    def offers(self, listing: Listing) -> None:
        """Stores a new listing."""
        self.listing = listing
        if not self.settings.url:
            return
        self._headed = tuple(each for each in listing.tools if x_mcp_header_map(each.input_schema))
        for connection in self._connections.values():
            if connection.is_open and connection.is_modern:
                connection.sends_headers_of(self._headed)

    async def connection(self, session_id: str) -> Connection:
        """Returns the connection of a conversation, opening it if necessary."""
        found = self._connections.get(session_id)
        if found is not None and found.is_open:
            if not found.callbacks.outdated:
                return found
            del self._connections[session_id]
            await found.retire()
        attempt = self._attempts.get(session_id)
        if attempt is None:
            attempt = self._attempts[session_id] = self._start_attempt(session_id)
        await attempt.done.wait()
        if attempt.connection is None:
            raise self._unavailable(attempt.problem)
        return attempt.connection

    @asynccontextmanager
    async def using(self, session_id: str) -> AsyncIterator[Connection]:
        """Yields the connection of a conversation, and marks it as used."""
        connection = await self.connection(session_id)
        async with connection.used():
            yield connection

    async def ask(
        self, session_id: str, question: Callable[[Connection], Awaitable[AnswerT]]
    ) -> AnswerT:
        """Sends a request; repeats it once if the server has lost the session.

        Args:
            session_id: The conversation.
            question: Sends the request.
        """
        connection = await self.connection(session_id)
        try:
            async with connection.used():
                return await question(connection)
        except ToolError:
            if not connection.is_forgotten:
                raise
        await connection.closed.wait()
        async with self.using(session_id) as another:
            return await question(another)

    async def ask_for_all(self, question: Callable[[Connection], Awaitable[AnswerT]]) -> AnswerT:
        """Sends a request on behalf of this process, independent of conversations.

        Args:
            question: Sends the request.
        """
        return await self.ask(self._home, question)

    async def next_connection(self, *, starts: bool) -> Connection:
        """Waits for a connection for listings.

        Args:
            starts: Whether to open one; otherwise waits until another caller does.
        """
        if starts:
            return await self.connection(self._home)
        while (found := self.home) is None:
            await self._opened.wait()
            self._opened = anyio.Event()
        return found

    async def refresh(self) -> Listing | None:
        """Lists the server; returns None, and logs why, if that fails."""
        connection = self.home
        if connection is None:
            return None
        try:
            async with connection.used():
                return await list_all(connection)
        except (MCPError, ToolError, TimeoutError, ValidationError) as error:
            problem = await problem_of(error, None)
            _logger.warning("The server %r could not be listed: %s.", self.name, problem)
            return None

    async def may_be_tried(self) -> None:
        """Waits until an unreachable server may be tried again."""
        await anyio.sleep(self.retry_in)

    def close(self) -> None:
        """Closes its connections in all conversations."""
        for connection in self._connections.values():
            connection.close()

    async def closed(self) -> None:
        """Waits until no connection is left."""
        for connection in tuple(self._connections.values()):
            await connection.closed.wait()

    def close_idle(self) -> None:
        """Closes the connections of conversations that seem to have ended."""
        for connection in self._idle():
            if time.monotonic() - connection.last_used >= IDLE_SECONDS:
                connection.close()

    def _idle(self) -> list[Connection]:
        """Returns unused connections, the longest idle first."""
        idle = [
            each
            for session_id, each in self._connections.items()
            if session_id != self._home and not each.is_busy
        ]
        return sorted(idle, key=lambda each: each.last_used)

    def _start_attempt(self, session_id: str) -> _Attempt:
        """Starts to connect, independent of the caller's cancellation."""
        if self._group is None:
            raise UnavailableError(f"The server {self.name!r} is not run by this process.")
        if self.retry_in:
            raise self._unavailable(self.problem)
        attempt = _Attempt()
        self._group.start_soon(self._try, session_id, attempt, self._group)
        return attempt

    async def _try(self, session_id: str, attempt: _Attempt, group: TaskGroup) -> None:
        if self.state is not State.UP:
            self._health.note(State.STARTING)
        try:
            connection = await self._opener.open(session_id, group)
        except UnavailableError as error:
            attempt.problem = error.message
            self._backoff.failed()
            self._health.note(State.DOWN, error.message)
        else:
            attempt.connection = self._connections[session_id] = connection
            if connection.is_modern:
                connection.sends_headers_of(self._headed)
            self._health.note(State.UP)
            self._opened.set()
            group.start_soon(self._watch, connection)
            while len(self._connections) > MOST_CONNECTIONS and (idle := self._idle()):
                del self._connections[idle[0].session_id]
                idle[0].close()
        finally:
            del self._attempts[session_id]
            attempt.done.set()

    async def _watch(self, connection: Connection) -> None:
        """Records the end of a connection."""
        await connection.closed.wait()
        if self._connections.get(connection.session_id) is connection:
            del self._connections[connection.session_id]
        if not connection.problem:
            return
        if not connection.is_forgotten:
            self._backoff.failed(connection.lived)
        if self.home is None:
            self._health.note(State.DOWN, connection.problem)
        _logger.warning("The server %r %s.", self.name, connection.problem)

    def _unavailable(self, problem: str) -> UnavailableError:
        again = ""
        if wait := self.retry_in:
            again = f" The next try is in {math.ceil(wait)} s."
        return UnavailableError(
            f"The server {self.name!r} {problem}.{again}",
            next_actions=[
                f"Ask the user to run `{self._command} servers`, which shows their state."
            ],
        )

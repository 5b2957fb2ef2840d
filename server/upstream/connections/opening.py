"""Connects to a server in several ways, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup

from server.settings.gateway import ServerSettings
from server.upstream.connections.connection import Callbacks, Connection, MakeCallbacks, Mode
from server.upstream.connections.failures import problem_of
from server.upstream.connections.http_link import HttpLink
from server.upstream.connections.link import Link, last_words_text
from server.upstream.connections.transport import Transports
from tools.core.errors import UnavailableError


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to connect to a server.

    Attributes:
        mode: How the era is determined.
        sse: Whether to use the older HTTP transport, which belongs to the older era.
    """

    mode: Mode
    sse: bool = False


_OLDER_TRANSPORT = _Way("legacy", sse=True)


class Opener:
    """Opens connections to one server, starting with the way that last worked.

    Args:
        server: The name of the server.
        settings: The settings of the server.
        transports: Builds the links.
        make_callbacks: Builds the handlers of its requests and notifications.
    """

    def __init__(
        self,
        server: str,
        settings: ServerSettings,
        transports: Transports,
        make_callbacks: MakeCallbacks,
    ) -> None:
        self._server = server
        self._settings = settings
        self._transports = transports
        self._make_callbacks = make_callbacks
        self._worked: dict[bool, _Way] = {}
        """The way that worked, with and without a handshake."""

    async def open(self, session_id: str, group: TaskGroup) -> Connection:
        """Opens a connection, which runs in a task of the group.

        Args:
            session_id: The conversation.
            group: The task group for its session.
        """
        seconds = self._settings.start_timeout
        tried: list[Link] = []
        try:
            with anyio.fail_after(seconds):
                return await self._open(session_id, group, tried)
        except TimeoutError:
            said = last_words_text(tried[-1]) if tried else ""
            raise UnavailableError(
                f"did not answer within {seconds:g} s, its start_timeout{said}"
            ) from None

    async def _open(self, session_id: str, group: TaskGroup, tried: list[Link]) -> Connection:
        callbacks = self._make_callbacks(self._server, session_id)
        problem, failed = "", None
        for way in self._ways(callbacks):
            if problem and not _helps(way, failed):
                continue
            failed = None
            try:
                failed = await self._transports.link(self._server, self._settings, sse=way.sse)
                tried.append(failed)
                connection = Connection(self._server, session_id, failed, callbacks, way.mode)
                await connection.open(group)
            except Exception as error:  # noqa: BLE001  # any failure to connect
                problem = problem or await problem_of(error, failed)
            else:
                self._worked[callbacks.handshake] = way
                return connection
        raise UnavailableError(problem)

    def _ways(self, callbacks: Callbacks) -> Iterator[_Way]:
        """Yields all ways; those after the first are for servers that did not understand it."""
        if self._settings.transport == "sse":
            yield _OLDER_TRANSPORT
            return
        ways = [_Way("legacy"), _Way("auto")] if callbacks.handshake else [_Way("auto")]
        if self._settings.command and not callbacks.handshake:
            ways.append(_Way("legacy"))  # some exit on an unknown first message
        if self._settings.url and self._settings.transport == "auto":
            ways.append(_OLDER_TRANSPORT)
        worked = self._worked.get(callbacks.handshake, ways[0])
        yield worked
        yield from (each for each in ways if each != worked)


def _helps(way: _Way, failed: Link | None) -> bool:
    """Returns whether another way may succeed where the last one failed."""
    if failed is None:  # the settings are invalid
        return False
    if way.sse:
        return isinstance(failed, HttpLink) and failed.is_not_streamable
    return failed.ended.is_set() or way.mode == "auto"

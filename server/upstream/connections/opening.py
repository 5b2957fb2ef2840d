"""Opening: the ways in which a session with a server may come about, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import anyio
from anyio.abc import TaskGroup

from server.settings.gateway import ServerSettings
from server.upstream.connections.connection import Callbacks, Connection, MakeCallbacks, Mode
from server.upstream.connections.failures import problem_of
from server.upstream.connections.http_link import HttpLink
from server.upstream.connections.link import Link, said_last
from server.upstream.connections.transport import Transports
from tools.core.errors import UnavailableError


@dataclass(frozen=True, slots=True)
class _Way:
    """How a server is spoken to.

    Attributes:
        mode: How the era is found.
        sse: Whether by the older transport over HTTP, which is of the older era.
    """

    mode: Mode
    sse: bool = False


_OLDER_TRANSPORT = _Way("legacy", sse=True)


class Opener:
    """Opens connections to one server, the way that worked before first.

    Args:
        server: Its name.
        settings: How it is reached.
        transports: Makes the links.
        make_callbacks: Makes what is done with what it asks and tells.
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
        """By whether a handshake was wanted."""

    async def open(self, session_id: str, group: TaskGroup) -> Connection:
        """A new connection, alive in a task of the group.

        Args:
            session_id: The conversation that it is for.
            group: Where it lives.
        """
        seconds = self._settings.start_timeout
        tried: list[Link] = []
        try:
            with anyio.fail_after(seconds):
                return await self._open(session_id, group, tried)
        except TimeoutError:
            said = said_last(tried[-1]) if tried else ""
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
            except Exception as error:  # noqa: BLE001  # whatever keeps it from being connected
                problem = problem or await problem_of(error, failed)
            else:
                self._worked[callbacks.handshake] = way
                return connection
        raise UnavailableError(problem)

    def _ways(self, callbacks: Callbacks) -> Iterator[_Way]:
        """All ways; those after the first are for servers that did not understand it."""
        if self._settings.transport == "sse":
            yield _OLDER_TRANSPORT
            return
        ways = [_Way("legacy"), _Way("auto")] if callbacks.handshake else [_Way("auto")]
        if self._settings.command and not callbacks.handshake:
            ways.append(_Way("legacy"))  # some end when the first message is none that they know
        if self._settings.url and self._settings.transport == "auto":
            ways.append(_OLDER_TRANSPORT)
        worked = self._worked.get(callbacks.handshake, ways[0])
        yield worked
        yield from (each for each in ways if each != worked)


def _helps(way: _Way, failed: Link | None) -> bool:
    """Whether another way may lead to a server where the last one failed."""
    if failed is None:  # the settings are wrong
        return False
    if way.sse:
        return isinstance(failed, HttpLink) and failed.is_not_streamable
    return failed.ended.is_set() or way.mode == "auto"

"""What one caller may browse of other servers, and the way to ask them for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, TypeAdapter, ValidationError

from server.auth import speaker_of
from server.sessions import Sessions
from server.upstream.failures import as_mcp_error
from server.upstream.gateway import Gateway
from server.upstream.listing import Listing
from server.upstream.upstream import Upstream
from storage.models import Identity
from tools.core.errors import ToolError

__all__ = ["Admits", "Offers", "admits_every", "passed_meta"]

FIRST_WAIT = 5.0
"""Seconds that a list waits for servers that never listed theirs before."""

RESERVED = "io.modelcontextprotocol/"
"""Before the keys of `_meta` that are about one connection alone."""

Context = ServerRequestContext[Any, Any]
ResultT = TypeVar("ResultT", bound=BaseModel)

Admits = Callable[[Context, str], bool]
"""Whether whoever asks may see anything of a server."""


def admits_every(_ctx: Context, _server: str) -> bool:
    """Lets everybody see every server."""
    return True


class Offers:
    """The other servers, as each caller may see them.

    Args:
        gateway: The other servers.
        sessions: Tells which conversation a request belongs to.
        identity: Whose requests these are where no token says it.
        admits: Who may see which of them.
    """

    def __init__(
        self,
        gateway: Gateway,
        sessions: Sessions,
        identity: Identity,
        admits: Admits = admits_every,
    ) -> None:
        self._gateway = gateway
        self._sessions = sessions
        self._identity = identity
        self._admits = admits

    async def listed(self) -> None:
        """Waits until every server was listed or could not be reached, for five seconds at most.

        What comes later is told as a change of the lists.
        """
        with anyio.move_on_after(FIRST_WAIT):
            await self._gateway.ready()

    def admits(self, ctx: Context, server: str) -> bool:
        """Whether whoever asks may see anything of a server."""
        return self._admits(ctx, server)

    def of(self, ctx: Context) -> list[tuple[Upstream, Listing]]:
        """Each server that whoever asks may see, in order, with what it listed last."""
        return [
            (each, each.listing)
            for name, each in self._gateway.upstreams.items()
            if each.listing is not None and self._admits(ctx, name)
        ]

    def named(self, ctx: Context, server: str) -> Upstream | None:
        """One server; None if there is none of that name for whoever asks."""
        found = self._gateway.upstreams.get(server)
        return found if found is not None and self._admits(ctx, server) else None

    def conversation(self, ctx: Context) -> str:
        """The conversation of a request, which has its own connections to the servers."""
        speaker = speaker_of(ctx, self._identity)
        return self._sessions.of(ctx, speaker.identity).session_id

    async def ask(
        self,
        ctx: Context,
        upstream: Upstream,
        request: types.Request[Any, Any],
        result: TypeAdapter[ResultT],
    ) -> ResultT:
        """Asks a server for what a client asked for.

        Args:
            ctx: The client's request.
            upstream: The server.
            request: What it is asked, whose `_meta` is the client's.
            result: What it answers.

        Raises:
            MCPError: The server's own, as it is; internal error if it cannot be reached or breaks
                the protocol.
        """
        try:
            with anyio.fail_after(upstream.settings.start_timeout + upstream.settings.timeout):
                return await upstream.ask(
                    self.conversation(ctx),
                    lambda connection: connection.session.send_request(request, result),
                )
        except (MCPError, ToolError, TimeoutError, ValidationError) as error:
            raise as_mcp_error(upstream.name, error) from error


def passed_meta(meta: types.RequestParamsMeta | None) -> Any:  # noqa: ANN401  # an open map
    """What a client says about its request that is for whoever answers it."""
    kept = {
        key: value
        for key, value in (meta or {}).items()
        if key != "progress_token" and not key.startswith(RESERVED)
    }
    return kept or None

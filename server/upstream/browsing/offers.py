"""What one caller may browse of other servers, and the way to ask them for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from server.mcp.asking.client_requests import ClientRequest, ClientRequests
from server.mcp.forwarding import with_forwarded_meta
from server.upstream.calling.exchange import Exchange
from server.upstream.connections.connection import Connection
from server.upstream.connections.failures import as_mcp_error
from server.upstream.connections.listing import Listing
from server.upstream.gateway import Gateway
from server.upstream.upstream import Upstream
from tools.conversion.naming import SEPARATOR
from tools.core.client import AnswersAwaitedError, ProgressReporter
from tools.core.context import RequestContext
from tools.core.errors import ToolError

FIRST_WAIT = 10.0
"""Seconds that lists wait, all in all, for servers that never listed theirs before."""

Context = ServerRequestContext[Any, Any]
ResultT = TypeVar("ResultT", bound=types.Result)

Admits = Callable[[Context, str], bool]
"""Whether whoever asks may see anything of a server."""


def admits_every(_ctx: Context, _server: str) -> bool:
    """Lets everybody see every server."""
    return True


@dataclass(frozen=True, slots=True)
class Asked(Generic[ResultT]):
    """What a client asks a server for, in the server's own names.

    Attributes:
        request: The request, but for its `_meta`.
        result: What is answered; it may be a question first where the request can be made again.
        meta: What the client told whoever works on it.
        report: Hears how far it is; None where nobody wants to.
    """

    request: types.Request[Any, Any]
    result: TypeAdapter[ResultT | types.InputRequiredResult]
    meta: Mapping[str, Any]
    report: ProgressReporter | None

    async def send(
        self,
        connection: Connection,
        answers: types.InputResponses | None = None,
        state: str | None = None,
    ) -> ResultT | types.InputRequiredResult:
        """Asks once.

        Args:
            connection: To the server.
            answers: To what it asked when it was asked before.
            state: What it handed over then.
        """
        update: dict[str, Any] = {"meta": dict(self.meta) or None}
        if isinstance(self.request.params, types.InputResponseRequestParams):
            update |= {"input_responses": answers, "request_state": state}
        params = self.request.params.model_copy(update=update)
        return await connection.session.send_request(
            self.request.model_copy(update={"params": params}),
            self.result,
            progress_callback=None if self.report is None else _positional(self.report),
        )


class Offers:
    """The other servers, as each caller may see them.

    Args:
        gateway: The other servers.
        requests: Takes what they ask to the client.
        admits: Who may see which of them.
    """

    def __init__(
        self,
        gateway: Gateway,
        requests: ClientRequests,
        admits: Admits = admits_every,
    ) -> None:
        self._gateway = gateway
        self._requests = requests
        self._admits = admits
        self._patience_ends: float | None = None

    async def listed(self) -> None:
        """Waits until every server was listed or could not be reached.

        Ten seconds after it was first waited for, nobody waits any more: what comes then is told as
        a change of the lists.
        """
        if self._patience_ends is None:
            self._patience_ends = anyio.current_time() + FIRST_WAIT
        if anyio.current_time() < self._patience_ends:
            with anyio.CancelScope(deadline=self._patience_ends):
                await self._gateway.ready()

    async def find(self, name: str) -> None:
        """Has a lazy server listed that a name begins with; others are waited for as by `listed`.

        Args:
            name: Of a prompt: `server__prompt`.
        """
        await self.listed()
        if SEPARATOR in name:
            await self._gateway.find(name)

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
        """The conversation of a request, whose client is known from now on."""
        self._requests.client_of(ctx)
        return self._requests.session_of(ctx)

    @contextmanager
    def opened(
        self, ctx: Context, params: types.InputResponseRequestParams, name: str
    ) -> Iterator[ClientRequest]:
        """The way to the client of a request, while servers work on it.

        Args:
            ctx: The request.
            params: What came with it.
            name: What is asked for.
        """
        arguments = getattr(params, "arguments", None) or {}
        try:
            relay = ClientRequest(ctx, params, (name, arguments), self._requests)
        except ToolError as error:
            raise as_mcp_error("", error) from error
        try:
            yield relay
        finally:
            relay.end()

    async def ask(
        self,
        relay: ClientRequest,
        upstream: Upstream,
        request: types.Request[Any, Any],
        result: TypeAdapter[ResultT | types.InputRequiredResult],
    ) -> ResultT | types.InputRequiredResult:
        """Asks a server for what a client asked for, and the client for what that wants to know.

        Args:
            relay: The way to the client.
            upstream: The server.
            request: What it is asked, in its own names.
            result: What it answers.
        """
        context = RequestContext(
            relay.principal.identity,
            _reporter(relay.ctx),
            session_id=relay.conversation.session_id,
        )
        exchange: Exchange[ResultT] = Exchange(upstream, context)
        named = request.method, request.params.model_dump(mode="json", exclude_none=True)
        try:
            answer = await exchange.make(
                named, lambda report: Asked(request, result, relay.meta, report), relay
            )
        except AnswersAwaitedError as error:
            awaited = relay.awaited()
            if awaited is None:
                raise as_mcp_error(upstream.name, error) from error
            return awaited
        except (MCPError, ToolError, ValidationError) as error:
            raise as_mcp_error(upstream.name, error) from error
        return with_forwarded_meta(answer)

    async def ask_plainly(
        self,
        ctx: Context,
        upstream: Upstream,
        request: types.Request[Any, Any],
        result: TypeAdapter[ResultT],
    ) -> ResultT:
        """Asks a server what it answers without a question of its own.

        Args:
            ctx: The client's request.
            upstream: The server.
            request: What it is asked, in its own names.
            result: What it answers.
        """
        session_id = self.conversation(ctx)
        try:
            with anyio.fail_after(upstream.settings.start_timeout + upstream.settings.timeout):
                answer = await upstream.ask(
                    session_id, lambda connection: connection.session.send_request(request, result)
                )
        except (MCPError, ToolError, TimeoutError, ValidationError) as error:
            raise as_mcp_error(upstream.name, error) from error
        return with_forwarded_meta(answer)


def _reporter(ctx: Context) -> ProgressReporter:
    async def report(done: float, total: float | None, message: str | None) -> None:
        await ctx.session.report_progress(done, total, message)

    return report


def _positional(report: ProgressReporter) -> ProgressFnT:
    async def told(progress: float, total: float | None, message: str | None) -> None:
        await report(progress, total, message)

    return told

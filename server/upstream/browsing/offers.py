"""What a caller may browse of other servers, and how to ask them for it."""

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
from tools.core.context import Link, Origin, RequestContext
from tools.core.errors import ToolError

FIRST_WAIT = 10.0
"""Seconds, in total, that lists wait for servers without an earlier listing."""

Context = ServerRequestContext[Any, Any]
ResultT = TypeVar("ResultT", bound=types.Result)

Admits = Callable[[Context, str], bool]
"""Returns whether a client may see a server."""


def admits_every(_ctx: Context, _server: str) -> bool:
    """Admits every client to every server."""
    return True


@dataclass(frozen=True, slots=True)
class Asked(Generic[ResultT]):
    """A client's request to a server, in the server's own names.

    Attributes:
        request: The request, without its `_meta`.
        result: The type of the answer; may be a question first if the request can be retried.
        meta: The client's metadata for the server.
        report: Receives progress; None if it is not wanted.
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
        """Sends the request once.

        Args:
            connection: The connection to the server.
            answers: The answers to its earlier questions.
            state: Its state from then.
        """
        update: dict[str, Any] = {"meta": dict(self.meta) or None}
        if isinstance(self.request.params, types.InputResponseRequestParams):
            update |= {"input_responses": answers, "request_state": state}
        params = self.request.params.model_copy(update=update)
        return await connection.session.send_request(
            self.request.model_copy(update={"params": params}),
            self.result,
            progress_callback=None if self.report is None else _to_callback(self.report),
        )


class Offers:
    """The other servers, as each caller may see them.

    Args:
        gateway: The other servers.
        requests: Forwards their requests to the client.
        admits: Returns whether a client may see a server.
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

    async def wait_listed(self) -> None:
        """Waits until every server was listed or is unreachable.

        Ten seconds after the first wait it no longer waits: later listings are announced as
        changes of the lists.
        """
        if self._patience_ends is None:
            self._patience_ends = anyio.current_time() + FIRST_WAIT
        if anyio.current_time() < self._patience_ends:
            with anyio.CancelScope(deadline=self._patience_ends):
                await self._gateway.ready()

    async def find(self, name: str) -> None:
        """Lists a lazy server whose name begins the given one; waits for others like `wait_listed`.

        Args:
            name: The name of a prompt: `server__prompt`.
        """
        await self.wait_listed()
        if SEPARATOR in name:
            await self._gateway.find(name)

    def admits(self, ctx: Context, server: str) -> bool:
        """Returns whether a client may see a server."""
        return self._admits(ctx, server)

    def of(self, ctx: Context) -> list[tuple[Upstream, Listing]]:
        """Returns each server that the client may see, in order, with its last listing."""
        return [
            (each, each.listing)
            for name, each in self._gateway.upstreams.items()
            if each.listing is not None and self._admits(ctx, name)
        ]

    def find_server(self, ctx: Context, server: str) -> Upstream | None:
        """Returns a server by name; None if the client may see no such server."""
        found = self._gateway.upstreams.get(server)
        return found if found is not None and self._admits(ctx, server) else None

    def conversation(self, ctx: Context) -> str:
        """Returns the conversation of a request, and records its client."""
        self._requests.client_of(ctx)
        return self._requests.session_of(ctx)

    @contextmanager
    def relay_for(
        self, ctx: Context, params: types.InputResponseRequestParams, name: str
    ) -> Iterator[ClientRequest]:
        """Yields the way back to the client while servers work on its request.

        Args:
            ctx: The request.
            params: Its parameters.
            name: The name of what is requested.
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
        """Forwards a client's request to a server, and the server's questions to the client.

        Args:
            relay: The way to the client.
            upstream: The server.
            request: The request, in the server's own names.
            result: The type of the answer.
        """
        context = RequestContext(
            Origin(relay.principal.identity, session_id=relay.conversation.session_id),
            Link(_reporter(relay.ctx)),
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
        """Forwards a request that a server answers without questions.

        Args:
            ctx: The client's request.
            upstream: The server.
            request: The request, in the server's own names.
            result: The type of the answer.
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


def _to_callback(report: ProgressReporter) -> ProgressFnT:
    async def callback(progress: float, total: float | None, message: str | None) -> None:
        await report(progress, total, message)

    return callback

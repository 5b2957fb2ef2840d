"""Resources and prompts of other servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from server.mcp.browsing.answers import RESOURCE_NOT_FOUND, Section, no_resource_at
from server.mcp.browsing.provider import Context, Provider
from server.mcp.browsing.subscriptions import Hear, Subscriptions, Unwatch
from server.mcp.elicitation.client_requests import ClientRequest
from server.mcp.sessions import ClientRequests
from server.mcp.wire import with_forwarded_meta
from server.upstream.browsing.directory import (
    Addresses,
    Directory,
    address_for,
    is_ours,
    meta_of,
    split,
)
from server.upstream.browsing.watches import Watched, Watches
from server.upstream.calling.exchange import Exchange, ResultT
from server.upstream.connections.connection import Connection
from server.upstream.connections.link import as_mcp_error
from server.upstream.connections.listing import Listing
from server.upstream.late_gateway import LateGateway
from server.upstream.skill_entries import roots_of
from server.upstream.upstream import Upstream
from tools.agent.skillfiles.skill import SCHEME
from tools.conversion.naming import SEPARATOR, exposed_name
from tools.core.client import AnswersAwaitedError
from tools.core.context import Link, Origin, RequestContext
from tools.core.errors import ToolError

FIRST_WAIT = 10.0
"""Seconds, in total, that lists wait for servers without an earlier listing."""

_READ: TypeAdapter[types.ReadResourceResult | types.InputRequiredResult] = TypeAdapter(
    types.ReadResourceResult | types.InputRequiredResult
)
_GOT: TypeAdapter[types.GetPromptResult | types.InputRequiredResult] = TypeAdapter(
    types.GetPromptResult | types.InputRequiredResult
)


class ServerProvider(Provider):
    """The resources and prompts of other servers, passed through.

    All are listed with `toolcrib/server` in their `_meta`. An address listed by two servers belongs
    to the first in the settings. The other's, and any `context://`, `skill://` and `toolcrib://`
    address of a server, is listed as `toolcrib://SERVER/ADDRESS`. In that form every address of
    every server can be read, except those in skills. A prompt is listed as `server__prompt`; its
    own name works too if it is unique.
    """

    def __init__(
        self,
        gateway: LateGateway,
        requests: ClientRequests,
        admits: Callable[[Context, str], bool],  # whether a client may see a server
        taken: Callable[[Context], Collection[str]],  # what belongs to providers before this one
    ) -> None:
        self._gateway = gateway
        self._requests = requests
        self._admits = admits
        self._taken = taken
        self._watches = Watches()
        self._addresses: dict[str, Addresses] = {}
        self._patience_ends: float | None = None

    @asynccontextmanager
    async def running(self, subscriptions: Subscriptions) -> AsyncIterator[None]:  # noqa: ARG002  # the gateway notifies it
        """Watches resources."""
        async with self._watches.running():
            yield

    async def resources(self, ctx: Context) -> Sequence[Section[types.Resource]]:
        """Returns the resources of each server."""
        await self._wait_listed()
        return self._directory(ctx).resources()

    async def templates(self, ctx: Context) -> Sequence[Section[types.ResourceTemplate]]:
        """Returns the templates of each server."""
        await self._wait_listed()
        return self._directory(ctx).templates()

    async def prompts(self, ctx: Context) -> Sequence[Section[types.Prompt]]:
        """Returns the prompts of each server."""
        await self._wait_listed()
        return [
            Section.of(f"server/{each.name}", listing.prompts, partial(_listed_prompt, each.name))
            for each, listing in self._visible(ctx)
        ]

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult | None:
        """Reads a resource from the first of the likely servers that has it."""
        owners = await self._owners(ctx, params.uri)
        if not owners:
            return None
        failure: MCPError | None = None
        with self._relay_for(ctx, params, params.uri) as relay:
            for upstream, own in owners:
                try:
                    return await self._read(relay, upstream, params.uri, own)
                except MCPError as error:
                    if not _is_not_found(error):
                        failure = failure or error
        raise failure or no_resource_at(params.uri, ctx)

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult | None:
        """Passes a prompt through."""
        found = await self._prompt_owner(ctx, params.name)
        if found is None:
            return None
        upstream, own = found
        asked = types.GetPromptRequestParams(name=own, arguments=params.arguments)
        with self._relay_for(ctx, params, params.name) as relay:
            return await _forward(relay, upstream, types.GetPromptRequest(params=asked), _GOT)

    async def complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult | None:
        """Passes a completion through, during which a server cannot ask."""
        if isinstance(params.ref, types.PromptReference):
            key, found = "name", await self._prompt_owner(ctx, params.ref.name)
        else:
            key, found = "uri", await self._template_owner(ctx, params.ref.uri)
        if found is None:
            return None
        upstream, own = found
        ref = params.ref.model_copy(update={key: own})
        request = types.CompleteRequest(params=params.model_copy(update={"ref": ref, "meta": None}))
        session_id = self._conversation(ctx)
        try:
            answer = await upstream.request(session_id, request, types.CompleteResult)
        except (MCPError, ToolError, TimeoutError, ValidationError) as error:
            raise as_mcp_error(upstream.name, error) from error
        return with_forwarded_meta(answer)

    async def watch(self, ctx: Context, uri: str, who: object, hear: Hear) -> Unwatch | None:
        """Registers a callback for possible changes; see Watcher."""
        session_id = self._conversation(ctx)
        failure: MCPError | None = None
        for upstream, own in await self._owners(ctx, uri):
            resource = Watched(upstream, session_id, own)
            try:
                await self._watches.add(resource, (who, uri), hear)
            except MCPError as error:
                failure = failure or error
            else:
                return partial(self._watches.remove, resource, (who, uri))
        if failure is not None:
            raise failure
        return None

    async def _wait_listed(self) -> None:
        """Waits until every server was listed or is unreachable.

        Ten seconds after the first wait it no longer waits: later listings are announced as
        changes of the lists.
        """
        if self._patience_ends is None:
            self._patience_ends = anyio.current_time() + FIRST_WAIT
        if anyio.current_time() < self._patience_ends:
            with anyio.CancelScope(deadline=self._patience_ends):
                await self._gateway.ready()

    def _visible(self, ctx: Context) -> list[tuple[Upstream, Listing]]:
        """Returns each server that the client may see, in order, with its last listing."""
        return [
            (each, each.listing)
            for name, each in self._gateway.upstreams.items()
            if each.listing is not None and self._admits(ctx, name)
        ]

    def _upstream_named(self, ctx: Context, server: str) -> Upstream | None:
        found = self._gateway.upstreams.get(server)
        return found if found is not None and self._admits(ctx, server) else None

    def _directory(self, ctx: Context) -> Directory:
        """Returns the addresses that the client may see."""
        known = []
        for upstream, listing in self._visible(ctx):
            addresses = self._addresses.get(upstream.name)
            if addresses is None or addresses.listing is not listing:
                addresses = self._addresses[upstream.name] = Addresses(listing)
            known.append((upstream, addresses))
        return Directory(known, self._taken(ctx))

    async def _owners(self, ctx: Context, uri: str) -> list[tuple[Upstream, str]]:
        """Returns servers that may know an address, likeliest first, with their own form of it."""
        server, own = split(uri)
        if server:
            named = self._upstream_named(ctx, server)
            return [] if named is None or _is_in_skill(own, named) else [(named, own)]
        if is_ours(uri):
            return []
        found = self._directory(ctx).owners(uri)
        if not found:  # its server may not be listed yet
            await self._wait_listed()
            found = self._directory(ctx).owners(uri)
        return [(upstream, uri) for upstream in found if not _is_in_skill(uri, upstream)]

    async def _template_owner(self, ctx: Context, template: str) -> tuple[Upstream, str] | None:
        """Returns the server that has a template, and its own form of it."""
        server, own = split(template)
        await self._wait_listed()
        if server:
            named = self._upstream_named(ctx, server)
            return None if named is None else (named, own)
        found = self._directory(ctx).owner_of_template(template)
        return None if found is None else (found, template)

    async def _prompt_owner(self, ctx: Context, name: str) -> tuple[Upstream, str] | None:
        """Returns the server of a prompt, and its name there."""
        found = self._find_prompt(ctx, name)
        if found is None:  # its server may not be listed yet
            await self._wait_listed()
            if SEPARATOR in name:
                await self._gateway.find(name)
            found = self._find_prompt(ctx, name)
        return found

    def _find_prompt(self, ctx: Context, name: str) -> tuple[Upstream, str] | None:
        prompts = [
            (upstream, each.name)
            for upstream, listing in self._visible(ctx)
            for each in listing.prompts
        ]
        for upstream, own in prompts:
            if exposed_name(upstream.name, own) == name:
                return upstream, own
        bare = [each for each in prompts if each[1] == name]
        return bare[0] if len(bare) == 1 else None

    def _conversation(self, ctx: Context) -> str:
        """Returns the conversation of a request, and records its client."""
        self._requests.client_of(ctx)
        return self._requests.session_of(ctx)

    @contextmanager
    def _relay_for(
        self, ctx: Context, params: types.InputResponseRequestParams, name: str
    ) -> Iterator[ClientRequest]:
        """Yields the way back to the client while servers work on its request."""
        arguments = getattr(params, "arguments", None) or {}
        try:
            relay = ClientRequest(ctx, params, (name, arguments), self._requests)
        except ToolError as error:
            raise as_mcp_error("", error) from error
        try:
            yield relay
        finally:
            relay.end()

    async def _read(
        self, relay: ClientRequest, upstream: Upstream, uri: str, own: str
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        request = types.ReadResourceRequest(params=types.ReadResourceRequestParams(uri=own))
        result = await _forward(relay, upstream, request, _READ)
        if isinstance(result, types.InputRequiredResult):
            return result
        contents = [
            each.model_copy(
                update={"uri": uri if each.uri == own else address_for(upstream.name, each.uri)}
            )
            for each in result.contents
        ]
        return result.model_copy(update={"contents": contents})


def _listed_prompt(server: str, given: types.Prompt) -> types.Prompt:
    name = exposed_name(server, given.name)
    return given.model_copy(update={"name": name, "meta": meta_of(server, given.meta)})


class _Forwarded(Exchange[ResultT]):
    """A client's request, in the server's own names."""

    def __init__(
        self,
        upstream: Upstream,
        relay: ClientRequest,
        message: types.Request[Any, Any],
        kind: TypeAdapter[ResultT | types.InputRequiredResult],
    ) -> None:
        origin = Origin(relay.principal.identity, session_id=relay.conversation.session_id)
        context = RequestContext(origin, Link(self._progress))
        named = message.method, message.params.model_dump(mode="json", exclude_none=True)
        super().__init__(upstream, context, relay, named)
        self._message = message
        self._kind = kind
        self._meta = relay.meta
        self._session = relay.ctx.session

    async def send(
        self, connection: Connection, answers: types.InputResponses | None, state: str | None
    ) -> ResultT | types.InputRequiredResult:
        """Sends the request once, with the client's metadata."""
        update: dict[str, Any] = {"meta": dict(self._meta) or None}
        if isinstance(self._message.params, types.InputResponseRequestParams):
            update |= {"input_responses": answers, "request_state": state}
        params = self._message.params.model_copy(update=update)
        message = self._message.model_copy(update={"params": params})
        return await self.request(connection.session, message, self._kind)

    async def _progress(self, done: float, total: float | None, message: str | None) -> None:
        await self._session.report_progress(done, total, message)


async def _forward(
    relay: ClientRequest,
    upstream: Upstream,
    request: types.Request[Any, Any],
    kind: TypeAdapter[ResultT | types.InputRequiredResult],
) -> ResultT | types.InputRequiredResult:
    """Forwards a client's request to a server, and the server's questions to the client."""
    try:
        answer = await _Forwarded(upstream, relay, request, kind).result()
    except AnswersAwaitedError as error:
        awaited = relay.awaited()
        if awaited is None:
            raise as_mcp_error(upstream.name, error) from error
        return awaited
    except (MCPError, ToolError, ValidationError) as error:
        raise as_mcp_error(upstream.name, error) from error
    return with_forwarded_meta(answer)


def _is_in_skill(uri: str, upstream: Upstream) -> bool:
    """Returns whether an address may only be read as part of a skill, which may await review."""
    known = upstream.listing
    return uri.lower().startswith((SCHEME,) if known is None else roots_of(known.skills))


def _is_not_found(error: MCPError) -> bool:
    """Returns whether an error means an unknown resource, in either era (SEP-2164)."""
    data = error.error.data
    names_it = isinstance(data, dict) and "uri" in data
    return error.code == RESOURCE_NOT_FOUND or (error.code == types.INVALID_PARAMS and names_it)

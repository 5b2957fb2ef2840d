"""The registry and its call path as an MCP server, for both eras of the protocol."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from server.mcp.asking.client_requests import ClientRequest, ClientRequests
from server.mcp.asking.elicitation import approver_of
from server.mcp.asking.sampling import sampler_of
from server.mcp.capabilities import CribServer
from server.mcp.profiles import Profiles
from server.mcp.prompts import PromptHandlers
from server.mcp.resources import ResourceHandlers
from server.mcp.safe_json import utf8_json, utf8_text
from server.mcp.sessions import Sessions
from server.mcp.surface import Surface
from server.mcp.tool_lists import ToolLists
from server.transport.auth import Principal, principal_of
from storage.models import Identity
from tools.core.client import ProgressReporter, Sampler
from tools.core.context import RequestContext
from tools.core.errors import InternalError, UnavailableError
from tools.core.manager import SandboxToolManager
from tools.core.registry import ToolRegistry
from tools.core.result import Media, ToolResult

if TYPE_CHECKING:
    from server.upstream.browsing.subscriptions import Subscriptions

__all__ = ["build_server"]

LIST_TTL_MS = 3_600_000
"""How long a client may keep a list that is fixed while the server runs."""

CHANGING_TTL_MS = 60_000
"""How long it may keep one that changes with other servers, if it does not listen to changes."""

Context = ServerRequestContext[Any, Any]


def build_server(  # noqa: PLR0913  # the composition root hands over every part by name
    registry: ToolRegistry,
    manager: SandboxToolManager,
    *,
    name: str,
    version: str,
    instructions: str,
    identity: Identity,
    surface: Surface,
    resources: ResourceHandlers,
    prompts: PromptHandlers,
    sessions: Sessions,
    ready: Callable[[], Awaitable[None]],
    sampler: Sampler | None = None,
    profiles: Profiles | None = None,
    subscriptions: Subscriptions | None = None,
    requests: ClientRequests | None = None,
) -> Server[Any]:
    """Makes the server that every transport runs.

    Calls find whatever the registry has, whatever is listed.

    Args:
        registry: The tools.
        manager: The call path.
        name: Name of the server, for the client.
        version: Version of the server.
        instructions: What a model should know of the server as a whole.
        identity: Whose calls these are where no token says it.
        surface: Which tools are listed.
        resources: What clients can browse.
        prompts: What people can start a conversation with.
        sessions: Tells which conversation a request belongs to.
        ready: Awaited before the list of tools is taken.
        sampler: The way to a model for clients that offer none.
        profiles: What single clients may find and call.
        subscriptions: Tells of changes; None where nothing changes but by what clients do.
        requests: Takes what other servers ask to the client.
    """
    requests = requests or ClientRequests(sessions, identity)
    profiles = profiles or Profiles({})
    lists = ToolLists(registry, surface, ready)
    bridge = _ToolBridge(registry, manager, identity, lists, profiles, sessions, requests, sampler)
    changing = () if subscriptions is None else subscriptions.lists
    server = CribServer(
        name,
        version=version,
        instructions=instructions,
        cache_hints={
            "tools/list": _hint("tools" in changing, profiles),
            "prompts/list": _hint("prompts" in changing, profiles),
            "resources/templates/list": _hint("resources" in changing, profiles),
        },
        get_tool_input_schema=bridge.input_schema,
        on_list_tools=bridge.list_tools,
        on_call_tool=bridge.call_tool,
        on_list_resources=resources.list_resources,
        on_list_resource_templates=resources.list_templates,
        on_read_resource=resources.read_resource,
        on_list_prompts=prompts.list_prompts,
        on_get_prompt=prompts.get_prompt,
        on_completion=prompts.complete,
    )
    server.changing = changing
    requests.register(server)
    if subscriptions is not None:
        subscriptions.register(server, lists.forget)
    return server


def _hint(changes: bool, profiles: Profiles) -> CacheHint:
    return CacheHint(
        ttl_ms=CHANGING_TTL_MS if changes else LIST_TTL_MS,
        scope="private" if profiles else "public",
    )


class _ToolBridge:
    """Answers tools/list and tools/call."""

    def __init__(  # noqa: PLR0913, PLR0917  # what `build_server` was handed
        self,
        registry: ToolRegistry,
        manager: SandboxToolManager,
        identity: Identity,
        lists: ToolLists,
        profiles: Profiles,
        sessions: Sessions,
        requests: ClientRequests,
        sampler: Sampler | None,
    ) -> None:
        self._registry = registry
        self._manager = manager
        self._identity = identity
        self._lists = lists
        self._profiles = profiles
        self._sessions = sessions
        self._requests = requests
        self._sampler = sampler

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """The schema by which the HTTP transport checks `Mcp-Param-*` headers."""
        spec = self._registry.get(name)
        return None if spec is None else spec.input_schema

    async def list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """All tools that the caller is shown, on one page, in the order of their names."""
        if params is not None and params.cursor is not None:
            raise MCPError(
                types.INVALID_PARAMS,
                utf8_text(f"Unknown cursor {params.cursor[:100]!r}: the tools are on one page."),
            )
        return types.ListToolsResult(tools=await self._lists.of(self._profiles.of(ctx)))

    async def call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Runs a tool.

        Every failure is a result with `isError`, an unknown name too: clients show a result to the
        model, which can then take a suggested name, while a protocol error ends the turn.
        """
        principal = principal_of(ctx, self._identity)
        called = params.name, params.arguments or {}
        try:
            request = self._requests.open(ctx, params, principal.identity, called)
        except UnavailableError as error:
            return _call_result(ToolResult.failure(error))
        context = self._context(ctx, principal, request)
        try:
            result = await self._manager.execute(*called, context)
            return _answer(result, request)
        finally:
            request.end()

    def _context(
        self, ctx: Context, principal: Principal, request: ClientRequest
    ) -> RequestContext:
        profile = self._profiles.of(ctx)
        conversation = self._sessions.of(ctx, principal.identity)
        can_be_asked = request.can_be_asked
        return RequestContext(
            principal.identity,
            _progress_reporter(ctx),
            tool_set=None if profile is None else profile.tool_set,
            bound=principal.bound,
            sampler=(sampler_of(request) if can_be_asked else None) or self._sampler,
            approver=approver_of(request) if can_be_asked else None,
            session_id=conversation.session_id,
            client=conversation.client,
            relay=request,
            repetition=lambda: request.repetition,
        )


def _answer(
    result: ToolResult, request: ClientRequest
) -> types.CallToolResult | types.InputRequiredResult:
    awaited = request.awaited()
    if awaited is not None:
        return awaited
    if request.refusal is not None:
        raise request.refusal
    try:
        return _call_result(result)
    except InternalError as error:
        return _call_result(ToolResult.failure(error))


def _call_result(result: ToolResult) -> types.CallToolResult:
    if isinstance(result.verbatim, types.CallToolResult):
        if not result.added:
            return result.verbatim
        content = [*result.verbatim.content, types.TextContent(text=utf8_text(result.added))]
        return result.verbatim.model_copy(update={"content": content})
    text = types.TextContent(text=utf8_text(result.text))
    return types.CallToolResult(
        content=[text, *map(_media_block, result.media)],
        structured_content=utf8_json(result.structured),
        is_error=result.is_error,
    )


def _media_block(media: Media) -> types.ContentBlock:
    data = b64encode(media.data).decode()
    if media.kind == "image":
        return types.ImageContent(data=data, mime_type=media.mime_type)
    return types.AudioContent(data=data, mime_type=media.mime_type)


def _progress_reporter(ctx: Context) -> ProgressReporter:
    """Reports to the client, which hears nothing unless it sent a progress token."""
    last = -math.inf

    async def report(done: float, total: float | None, message: str | None) -> None:
        nonlocal last
        if done > last:  # the protocol wants each value greater than the one before
            last = done
            await ctx.session.report_progress(done, total, message and utf8_text(message))

    return report

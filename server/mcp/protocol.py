"""Builds an MCP server from the registry and its call path, for both eras of the protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.shared.exceptions import MCPError

from server.mcp.elicitation.client_requests import ClientRequest, context_of
from server.mcp.sessions import ClientRequests, Variant, client_of, principal_of, variant_of
from server.mcp.surface import Surface, ToolLists
from server.mcp.wire import call_result, result_form
from tools.core.client import Sampler
from tools.core.context import RequestContext
from tools.core.errors import InternalError, UnavailableError
from tools.core.registry import ToolRegistry
from tools.core.result import ToolResult
from tools.core.spec import ToolSpec
from tools.core.unicode_safety import encodable

if TYPE_CHECKING:  # servers of one's own have none of these
    from server.mcp.browsing.provider import Browsing
    from server.mcp.browsing.skill_methods import SkillMethods
    from server.mcp.profiles import Profile, Profiles
    from server.mcp.tasks import Answer, Finished, Tasks
    from server.settings.gateway import Results
    from tools.answers.task_reports import TaskReport

LIST_TTL_MS = 3_600_000
"""Time that a client may cache a list that is fixed while the server runs."""

CHANGING_TTL_MS = 10_000
"""Time that it may cache a list that changes with function files or other servers."""

Context = ServerRequestContext[Any, Any]


class CallPath(Protocol):
    """Runs calls."""

    async def execute(
        self, name: str, arguments: Mapping[str, Any], context: RequestContext
    ) -> ToolResult:
        """Runs a call; every failure is a result."""


def build_server(  # noqa: PLR0913  # the composition root hands over every part by name
    registry: ToolRegistry,
    manager: CallPath,
    *,
    name: str,
    version: str,
    instructions: str | None,  # for models, about the server as a whole
    surface: Surface,
    browsing: Browsing | None,  # None for tools alone, which never change
    requests: ClientRequests,
    ready: Callable[[], Awaitable[None]],  # awaited before tools are listed
    sampler: Sampler | None = None,  # the model for clients without sampling
    profiles: Profiles | None = None,  # restrict clients
    results: Results = "auto",  # the form of results unless a profile sets it
    tasks: Tasks | None = None,  # turns long calls into tasks; None waits for them
    skills: SkillMethods | None = None,  # the skills extension
) -> Server[Any]:
    """Builds the server that every transport runs.

    Calls reach all tools in the registry, listed or not.
    """
    lists = ToolLists(registry, surface, ready)
    handlers = _ToolHandlers(
        registry, manager, lists, surface.lists_all, profiles, results, requests, sampler, tasks
    )
    changing = () if browsing is None else browsing.subscriptions.lists

    def hint(kind: str) -> CacheHint:
        ttl = CHANGING_TTL_MS if kind in changing else LIST_TTL_MS
        varies = kind == "tools" or profiles is not None  # with the client's name
        return CacheHint(ttl_ms=ttl, scope="private" if varies else "public")

    server = _Server(
        name,
        version=version,
        instructions=instructions,
        cache_hints={
            "tools/list": hint("tools"),
            "prompts/list": hint("prompts"),
            "resources/templates/list": hint("resources"),
        },
        get_tool_input_schema=handlers.input_schema,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,  # type: ignore[arg-type]  # the SDK knows no tasks
        **_browsing_handlers(browsing),
    )
    server.changing = changing
    requests.register(server)
    if tasks is not None:
        tasks.register(server)
    if skills is not None:
        skills.register(server)
    if browsing is not None:
        browsing.subscriptions.register(server, lists.forget)
    return server


def _browsing_handlers(browsing: Browsing | None) -> dict[str, Any]:
    """Returns handlers only if there is anything, so that clients do not ask for it."""
    if browsing is None:
        return {}
    return {
        "on_list_resources": browsing.list_resources,
        "on_list_resource_templates": browsing.list_templates,
        "on_read_resource": browsing.read_resource,
        "on_list_prompts": browsing.list_prompts,
        "on_get_prompt": browsing.get_prompt,
        "on_completion": browsing.complete,
    }


class _Server(Server[Any]):
    """The SDK's server, with the capability `list_changed` per list instead of for all."""

    # The lists that change while it runs: of tools, prompts and resources.
    changing: Collection[str] = ()

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        """Returns the SDK's capabilities, with `list_changed` set per list."""
        capabilities = super().get_capabilities(
            notification_options,
            experimental_capabilities,
            extensions,
            protocol_version=protocol_version,
        )
        for kind in ("tools", "prompts", "resources"):
            if (offered := getattr(capabilities, kind)) is not None:
                offered.list_changed = kind in self.changing
        return capabilities


@dataclass(frozen=True, slots=True)
class _ToolHandlers:
    """Handles tools/list and tools/call for `build_server`."""

    registry: ToolRegistry
    manager: CallPath
    lists: ToolLists
    lists_all: bool
    profiles: Profiles | None
    results: Results
    requests: ClientRequests
    sampler: Sampler | None
    tasks: Tasks | None

    def input_schema(self, name: str) -> Mapping[str, Any] | None:
        """Returns the schema by which the HTTP transport checks `Mcp-Param-*` headers."""
        spec = self.registry.get(name)
        return None if spec is None else spec.input_schema

    async def list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """Returns the tools listed for the caller, on one page, ordered by name."""
        if params is not None and params.cursor is not None:
            raise MCPError(
                types.INVALID_PARAMS,
                encodable(f"Unknown cursor {params.cursor[:100]!r}: the tools are on one page."),
            )
        profile, variant = self._profile_and_variant(ctx)
        user_id = principal_of(ctx, self.requests.identity).identity.user_id
        return types.ListToolsResult(tools=await self.lists.of(profile, variant, user_id))

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Answer:
        """Runs a tool.

        Every failure is a result with `isError`, even an unknown name: clients show results to the
        model, which can then try a suggested name, while a protocol error ends the turn.
        """
        called = params.name, params.arguments or {}
        profile, variant = self._profile_and_variant(ctx)
        try:
            request = ClientRequest(ctx, params, called, self.requests)
        except UnavailableError as error:
            return call_result(ToolResult.failure(error), "text")
        tool_set = None if profile is None else profile.tool_set
        context = context_of(request, sampler=self.sampler, tool_set=tool_set)
        execute = partial(self.manager.execute, *called)
        find = partial(self.registry.of(context.identity.user_id).get, params.name)
        spec = find()

        def finish(result: ToolResult) -> Finished:
            return _answer(result, request, self._form(spec or find(), variant))

        # A tool that is still unknown may appear during the call.
        may_last = spec is None or spec.may_become_job or spec.is_proxy
        if may_last and self.tasks is not None and self.tasks.jobs.is_running:

            def answer(report: TaskReport) -> types.CallToolResult:
                return self._job_answer(spec or find(), variant, report)

            return await self.tasks.make(request, context, execute, finish, answer)
        try:
            return finish(await execute(context))
        finally:
            request.end()

    def _job_answer(
        self, spec: ToolSpec | None, variant: Variant, report: TaskReport
    ) -> types.CallToolResult:
        """Returns the answer for a call that continues as a job.

        Clients that know the tool's output schema, which is listed only for other servers' tools,
        accept nothing else instead except failures.
        """
        is_listed = spec is not None and bool(spec.server) and spec.output_schema is not None
        told = ToolResult(report.model_dump(mode="json"), report.to_text(), is_error=is_listed)
        return call_result(told, self._form(spec, variant))

    def _form(self, spec: ToolSpec | None, variant: Variant) -> Results:
        return result_form(spec, variant, lists_all=self.lists_all)

    def _profile_and_variant(self, ctx: Context) -> tuple[Profile | None, Variant]:
        """Returns a request's profile and the variant of its lists and results."""
        profile = None if self.profiles is None else self.profiles.of(ctx)
        own = None if profile is None else profile.results
        return profile, variant_of(client_of(ctx), own or self.results)


def _answer(
    result: ToolResult, request: ClientRequest, results: Results
) -> types.CallToolResult | types.InputRequiredResult:
    awaited = request.awaited()
    if awaited is not None:
        return awaited
    refusal = request.refusal
    if result.is_error and result.verbatim is None:
        refusal = refusal or request.missing_capability(result.structured["message"])
    if refusal is not None:
        raise refusal
    try:
        return call_result(result, results)
    except InternalError as error:
        return call_result(ToolResult.failure(error), "text")

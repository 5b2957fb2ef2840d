"""Resources and prompts of functions, which run for a client with a deadline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypeVar

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.path_security import contains_path_traversal, is_absolute_path
from mcp.shared.uri_template import UriTemplate

from server.mcp.browsing.answers import Section, completion_of, no_resource_at
from server.mcp.browsing.provider import Context, Provider, add_watcher
from server.mcp.browsing.subscriptions import Hear, Unwatch
from server.mcp.elicitation.client_requests import ClientRequest, context_of
from server.mcp.profiles import Profiles
from server.mcp.sessions import ClientRequests, principal_of
from server.mcp.wire import content_block, resource_contents
from tools.core.calling.call import in_time
from tools.core.client import AnswersAwaitedError, Sampler
from tools.core.content import EmbeddedResource
from tools.core.context import Origin, RequestContext
from tools.core.errors import InvalidArgumentsError, NotFoundError, as_tool_error, only_cause
from tools.core.offered import Message, Offered, PromptSpec, ResourceSpec, Spec
from tools.core.unicode_safety import encodable

MadeT = TypeVar("MadeT")
SpecT = TypeVar("SpecT", PromptSpec, ResourceSpec)
Work = Callable[[RequestContext], Awaitable[MadeT]]
Values = dict[str, str | list[str]]


class FunctionProvider(Provider):
    """The resources and prompts of functions; profiles name them as they do tools."""

    def __init__(
        self,
        offered: Offered,
        requests: ClientRequests,
        profiles: Profiles,
        ready: Callable[[], Awaitable[None]],  # awaited before the offers are read
        sampler: Sampler | None = None,  # for clients without sampling
    ) -> None:
        self._offered = offered
        self._requests = requests
        self._profiles = profiles
        self._ready = ready
        self._sampler = sampler
        self._watched: defaultdict[str, dict[object, Hear]] = defaultdict(dict)

    async def resources(self, ctx: Context) -> Sequence[Section[types.Resource]]:
        """Returns the resources without variables."""
        await self._ready()
        listed = [listed_resource(each) for each in self._visible(ctx) if not each.is_template]
        return [Section.of("functions", listed)]

    async def templates(self, ctx: Context) -> Sequence[Section[types.ResourceTemplate]]:
        """Returns the resources with variables."""
        await self._ready()
        listed = [listed_template(each) for each in self._visible(ctx) if each.is_template]
        return [Section.of("functions", listed)]

    async def prompts(self, ctx: Context) -> Sequence[Section[types.Prompt]]:
        """Returns the prompts."""
        await self._ready()
        prompts = self._offered.prompts.values()
        listed = [listed_prompt(each) for each in prompts if self._admits(ctx, each)]
        return [Section.of("functions", listed)]

    async def read_resource(
        self, ctx: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult | None:
        """Runs the function of a resource."""
        found = await self._find(ctx, params.uri)
        if found is None:
            return None
        spec, values = found

        async def read(context: RequestContext) -> tuple[EmbeddedResource, ...]:
            _check_paths(params.uri, values)
            return await spec.read(spec.validate(values), context)

        try:
            contents = await self._run(ctx, params, spec, read)
        except NotFoundError as error:
            raise no_resource_at(params.uri, ctx) from error
        if isinstance(contents, types.InputRequiredResult):
            return contents
        if not contents:
            raise no_resource_at(params.uri, ctx)
        return types.ReadResourceResult(
            contents=[resource_contents(each, params.uri) for each in contents]
        )

    async def get_prompt(
        self, ctx: Context, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult | None:
        """Runs the function of a prompt."""
        spec = await self._find_exactly(ctx, self._offered.prompts, params.name)
        if spec is None:
            return None

        async def render(context: RequestContext) -> Sequence[Message]:
            return await spec.render(spec.validate(params.arguments or {}), context)

        try:
            messages = await self._run(ctx, params, spec, render)
        except NotFoundError as error:
            raise _invalid(error) from error
        if isinstance(messages, types.InputRequiredResult):
            return messages
        return types.GetPromptResult(
            description=spec.description or None,
            messages=[
                types.PromptMessage(role=each.role, content=content_block(each.content))
                for each in messages
            ],
        )

    async def complete(
        self, ctx: Context, params: types.CompleteRequestParams
    ) -> types.CompleteResult | None:
        """Runs the function that completes an argument or a variable."""
        ref, argument = params.ref, params.argument
        spec: Spec | None
        if isinstance(ref, types.PromptReference):
            spec = await self._find_exactly(ctx, self._offered.prompts, ref.name)
        else:
            spec = await self._find_exactly(ctx, self._offered.resources, ref.uri)
        if spec is None:
            return None
        given = (params.context and params.context.arguments) or {}
        # The client of a completion cannot be asked back.
        principal = principal_of(ctx, self._requests.identity)
        session_id = self._requests.session_of(ctx)
        origin = Origin(principal.identity, bound=principal.bound, session_id=session_id)
        work = partial(spec.complete, argument.name, argument.value, given)
        try:
            return completion_of(
                await in_time(spec.name, spec.timeout, RequestContext(origin), work)
            )
        except Exception as error:
            failure = _failure(error, spec)
            raise (_invalid(failure) if isinstance(failure, NotFoundError) else failure) from error

    async def watch(self, ctx: Context, uri: str, who: object, hear: Hear) -> Unwatch | None:
        """Registers a callback for changes that the function reports; see Watcher."""
        if await self._find(ctx, uri) is None:
            return None
        return add_watcher(self._watched, uri, who, hear)

    async def changed(self, uri: str) -> None:
        """Notifies the watchers of an address."""
        for hear in tuple(self._watched.get(uri, {}).values()):
            await hear()

    def addresses(self, ctx: Context) -> list[str]:
        """Returns the addresses and templates that the client may see."""
        return [each.uri for each in self._visible(ctx)]

    async def _find(self, ctx: Context, uri: str) -> tuple[ResourceSpec, Values] | None:
        """Returns the resource at an address with the values of its variables."""
        await self._ready()
        named = self._offered.resources.get(uri)
        if named is not None and not named.is_template:
            return (named, {}) if self._admits(ctx, named) else None
        for each in self._visible(ctx):
            values = _parse(each.uri).match(uri) if each.is_template else None
            if values is not None:
                return each, values
        return None

    async def _find_exactly(
        self, ctx: Context, offered: Mapping[str, SpecT], name: str
    ) -> SpecT | None:
        await self._ready()
        found = offered.get(name)
        return found if found is not None and self._admits(ctx, found) else None

    def _visible(self, ctx: Context) -> list[ResourceSpec]:
        return [each for each in self._offered.resources.values() if self._admits(ctx, each)]

    def _admits(self, ctx: Context, spec: Spec) -> bool:
        profile = self._profiles.of(ctx)
        return profile is None or profile.tool_set.admits(spec)

    async def _run(
        self, ctx: Context, params: types.InputResponseRequestParams, spec: Spec, work: Work[MadeT]
    ) -> MadeT | types.InputRequiredResult:
        """Does the work of a client's request, during which the client can be asked."""
        # The address of a resource is what was called.
        name = getattr(params, "uri", spec.name)
        arguments: Mapping[str, Any] = getattr(params, "arguments", None) or {}
        try:
            request = ClientRequest(ctx, params, (name, arguments), self._requests)
        except Exception as error:
            raise _failure(error, spec) from error
        try:
            profile = self._profiles.of(ctx)
            tool_set = None if profile is None else profile.tool_set
            context = context_of(request, sampler=self._sampler, tool_set=tool_set)
            timed = partial(in_time, spec.name, spec.timeout, work=work)
            return await request.carry(context, name, arguments, timed)
        except Exception as error:
            awaits = isinstance(only_cause(error), AnswersAwaitedError)
            awaited = request.awaited() if awaits else None
            if awaited is None:
                raise _failure(error, spec, request) from error
            return awaited
        finally:
            request.end()


def _failure(error: Exception, spec: Spec, request: ClientRequest | None = None) -> Exception:
    """Converts a failure to the error for the client; an unknown resource stays as it is."""
    if isinstance(error, MCPError):
        return error
    failure = as_tool_error(error, spec.name)
    if isinstance(failure, NotFoundError):
        return failure
    if request is not None and (missing := request.missing_capability(failure.message)):
        return missing
    wrong = isinstance(failure, InvalidArgumentsError)
    text = " ".join([failure.message, *failure.next_actions])
    return MCPError(types.INVALID_PARAMS if wrong else types.INTERNAL_ERROR, encodable(text))


def _invalid(error: NotFoundError) -> MCPError:
    return MCPError(types.INVALID_PARAMS, encodable(error.message))


@lru_cache
def _parse(template: str) -> UriTemplate:
    return UriTemplate.parse(template)


def _check_paths(uri: str, values: Values) -> None:
    """Rejects values that could lead a function out of its directory.

    Any client may read a resource without approval.
    """
    for name, value in values.items():
        for each in [value] if isinstance(value, str) else value:
            if "\0" in each or contains_path_traversal(each) or is_absolute_path(each):
                raise InvalidArgumentsError(
                    f"{name} in {uri!r} leads elsewhere; leave out `..`, a leading slash and NUL."
                )


def _about(spec: ResourceSpec) -> dict[str, Any]:
    annotations = types.Annotations(audience=list(spec.audience) or None, priority=spec.priority)
    return {
        "name": spec.name,
        "title": spec.title,
        "description": spec.description or None,
        "mime_type": spec.mime_type or None,
        "annotations": annotations if spec.audience or spec.priority is not None else None,
    }


def listed_resource(spec: ResourceSpec) -> types.Resource:
    """Converts a resource for the list."""
    return types.Resource(uri=spec.uri, size=spec.size, **_about(spec))


def listed_template(spec: ResourceSpec) -> types.ResourceTemplate:
    """Converts a template for the list."""
    return types.ResourceTemplate(uri_template=spec.uri, **_about(spec))


def listed_prompt(spec: PromptSpec) -> types.Prompt:
    """Converts a prompt for the list."""
    return types.Prompt(
        name=spec.name,
        title=spec.title,
        description=spec.description or None,
        arguments=[
            types.PromptArgument(
                name=each.name, description=each.description or None, required=each.required
            )
            for each in spec.arguments
        ],
    )

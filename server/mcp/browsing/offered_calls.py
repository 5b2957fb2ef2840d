"""Reads functions' resources and gets their prompts for a client, with a deadline."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from server.mcp.asking.client_requests import ClientRequest, ClientRequests
from server.mcp.asking.contexts import context_of, run_once
from server.mcp.profiles import Profiles
from server.mcp.sessions import principal_of
from tools.core.browsing.offered import Spec
from tools.core.calling.call import in_time
from tools.core.client import AnswersAwaitedError, Sampler
from tools.core.context import Origin, RequestContext
from tools.core.errors import InvalidArgumentsError, NotFoundError, as_tool_error, only_cause
from tools.core.invisible import encodable

Context = ServerRequestContext[Any, Any]
MadeT = TypeVar("MadeT")
Work = Callable[[RequestContext], Awaitable[MadeT]]


@dataclass(frozen=True, slots=True)
class OfferedCalls:
    """Runs what functions offer in addition to tools.

    Attributes:
        requests: The requests of clients.
        profiles: The profiles that restrict clients.
        ready: Awaited before the offers are read.
        sampler: The model for clients without sampling.
    """

    requests: ClientRequests
    profiles: Profiles
    ready: Callable[[], Awaitable[None]]
    sampler: Sampler | None = None

    def admits(self, ctx: Context, spec: Spec) -> bool:
        """Returns whether the client may see it: profiles name it as they do tools."""
        profile = self.profiles.of(ctx)
        return profile is None or profile.tool_set.admits(spec)

    async def run(
        self, ctx: Context, params: types.InputResponseRequestParams, spec: Spec, work: Work[MadeT]
    ) -> MadeT | types.InputRequiredResult:
        """Handles a client's request.

        Args:
            ctx: The request.
            params: Its parameters.
            spec: The requested resource or prompt.
            work: Does the work.

        Raises:
            NotFoundError: If it does not exist.
        """
        name, arguments = called = _called_with(params, spec)
        try:
            request = ClientRequest(ctx, params, called, self.requests)
        except Exception as error:
            raise _refusal(error, spec) from error
        try:
            profile = self.profiles.of(ctx)
            tool_set = None if profile is None else profile.tool_set
            context = context_of(request, sampler=self.sampler, tool_set=tool_set)
            timed = partial(in_time, spec.name, spec.timeout, work=work)
            return await run_once(request, context, name, arguments, timed)
        except Exception as error:
            awaited = request.awaited() if _awaits_answers(error) else None
            if awaited is None:
                raise _refusal(error, spec, request) from error
            return awaited
        finally:
            request.end()

    async def run_plainly(self, ctx: Context, spec: Spec, work: Work[MadeT]) -> MadeT:
        """Handles a request of a client that cannot be asked back.

        Args:
            ctx: The request.
            spec: The resource or prompt.
            work: Does the work.
        """
        principal = principal_of(ctx, self.requests.identity)
        session_id = self.requests.session_of(ctx)
        context = RequestContext(
            Origin(principal.identity, bound=principal.bound, session_id=session_id)
        )
        try:
            return await in_time(spec.name, spec.timeout, context, work)
        except Exception as error:
            raise _refusal(error, spec) from error


def _called_with(
    params: types.InputResponseRequestParams, spec: Spec
) -> tuple[str, Mapping[str, Any]]:
    """Returns the called name and its arguments; for a resource, its address is the name."""
    return getattr(params, "uri", spec.name), getattr(params, "arguments", None) or {}


def _awaits_answers(error: Exception) -> bool:
    return isinstance(only_cause(error), AnswersAwaitedError)


def _refusal(error: Exception, spec: Spec, request: ClientRequest | None = None) -> Exception:
    """Converts a failure to the error for the client."""
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

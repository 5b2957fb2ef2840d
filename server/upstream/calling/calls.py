"""Calls of the tools of other servers."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from server.mcp.asking.client_requests import ClientRequest
from server.upstream.calling.answers import result_of
from server.upstream.calling.exchange import Exchange
from server.upstream.calling.refusals import for_client, no_result, refusal
from server.upstream.calling.sending import Outgoing
from server.upstream.upstream import Upstream
from tools.core.client import ProgressReporter
from tools.core.context import RequestContext
from tools.core.result import ToolResult

__all__ = ["call"]


async def call(
    upstream: Upstream, own_name: str, arguments: dict[str, Any], context: RequestContext
) -> ToolResult:
    """Calls a tool of another server and hands on what it answers.

    Args:
        upstream: The server.
        own_name: What it calls the tool.
        arguments: As the caller gave them.
        context: Whose call it is.

    Raises:
        UnavailableError: If the server cannot be reached.
        InvalidArgumentsError: If it does not take the arguments.
        UpstreamError: If it answers with another error of the protocol, or not as that wants it.
        DeadlineError: If it takes too long; the time in which somebody is asked does not count.
        AnswersAwaitedError: If the client has to answer first, and then makes the call again.
    """
    relay = context.relay if isinstance(context.relay, ClientRequest) else None
    made: Exchange[types.CallToolResult] = Exchange(upstream, context)

    def outgoing(report: ProgressReporter | None) -> Outgoing:
        if relay is None:
            return Outgoing(own_name, arguments)
        return Outgoing(own_name, arguments, relay.meta, report, relay.level)

    try:
        if relay is None:
            answer = await made.alone(outgoing(None))
        else:
            answer = await made.make((own_name, arguments), outgoing, relay)
    except MCPError as error:
        if relay is not None:
            able = relay.ctx.session.client_capabilities
            relay.refusal = for_client(upstream.name, error, able)
        raise refusal(upstream.name, error) from error
    except ValidationError as error:
        raise no_result(upstream.name, error) from error
    return result_of(answer, modern=relay is not None and relay.is_modern)

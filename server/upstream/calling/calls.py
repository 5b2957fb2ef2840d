"""Calls of the tools of other servers, and their answers."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from server.mcp.asking.client_requests import ClientRequest
from server.mcp.asking.function_run import FunctionRun
from server.mcp.forwarding import with_forwarded_meta
from server.upstream.calling.exchange import Exchange
from server.upstream.calling.refusals import for_client, no_result, refusal
from server.upstream.calling.sending import Outgoing
from server.upstream.upstream import Upstream
from tools.conversion.results.jsonable import sayable
from tools.core.client import ProgressReporter
from tools.core.content import Media
from tools.core.context import RequestContext
from tools.core.result import ToolFailure, ToolResult


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
    relay = context.relay if isinstance(context.relay, ClientRequest | FunctionRun) else None
    made: Exchange[types.CallToolResult] = Exchange(upstream, context)

    def outgoing(report: ProgressReporter | None) -> Outgoing:
        outgoing = Outgoing(own_name, arguments, made.ask, made.heard)
        if relay is None:
            return outgoing
        return replace(outgoing, meta=relay.meta, report=report, level=relay.level)

    try:
        if relay is None:
            answer = await made.alone(outgoing(None))
        else:
            answer = await made.make((own_name, arguments), outgoing, relay)
    except MCPError as error:
        if isinstance(relay, ClientRequest):  # what a function makes of it is up to the function
            able = relay.ctx.session.client_capabilities
            relay.refusal = for_client(upstream.name, error, able)
        raise refusal(upstream.name, error) from error
    except ValidationError as error:
        raise no_result(upstream.name, error) from error
    return _result(answer, modern=relay is not None and relay.is_modern)


def _result(answer: types.CallToolResult, *, modern: bool) -> ToolResult:
    """The answer as it came, with what is recorded of it; `modern` is protocol 2026-07-28."""
    text = "\n".join(each.text for each in answer.content if isinstance(each, types.TextContent))
    structured: dict[str, Any]
    if answer.is_error:
        failure = ToolFailure(error_type="upstream_failed", message=text)
        structured = failure.model_dump(mode="json")
    elif isinstance(answer.structured_content, dict):
        structured = answer.structured_content
    else:
        structured = {}
    structured, note = sayable(structured)
    ours = with_forwarded_meta(answer if modern else _for_older(answer))
    media = tuple(_media(answer.content))
    return ToolResult(structured, text, bool(answer.is_error), media, verbatim=ours, added=note)


def _media(content: Sequence[types.ContentBlock]) -> Iterator[Media]:
    """Images and sounds, for where several answers become one; what is none is left out."""
    for block in content:
        if isinstance(block, types.ImageContent | types.AudioContent):
            with suppress(ValueError):
                yield Media(block.type, b64decode(block.data), block.mime_type)


def _for_older(answer: types.CallToolResult) -> types.CallToolResult:
    """The answer for a client until 2025-11-25, to which structured content is an object.

    Any other value is told as text, unless the server did so itself, as it should (2026-07-28,
    Structured Content).
    """
    value = answer.structured_content
    if value is None or isinstance(value, dict):
        return answer
    told = [types.TextContent(text=json.dumps(value, ensure_ascii=False))]
    return answer.model_copy(update={"structured_content": None, "content": answer.content or told})

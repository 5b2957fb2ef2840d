"""Calls tools of other servers and processes their answers."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import mcp_types as types
from mcp.client.session import ClientSession
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from pydantic import Discriminator, Tag, TypeAdapter, ValidationError

from server.mcp.asking.client_requests import ClientRequest
from server.mcp.asking.function_run import FunctionRun
from server.mcp.forwarding import with_forwarded_meta
from server.mcp.sessions import can_ask
from server.upstream.calling.exchange import Exchange
from server.upstream.calling.question_text import UnshowableError, present_page
from server.upstream.calling.questions import Questions
from server.upstream.calling.upstream_tasks import Ask, CreatedTask, Follower, is_task
from server.upstream.connections.connection import Connection
from server.upstream.upstream import Upstream
from tools.conversion.results.jsonable import without_endless
from tools.core.client import ProgressReporter
from tools.core.content import Media
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError, ToolError, UpstreamError
from tools.core.invisible import encodable
from tools.core.result import ToolFailure, ToolResult

MOST_PAGES = 100
"""Maximum number of pages of a tool list that is requested again."""

Answer = types.CallToolResult | types.InputRequiredResult

_ANSWER: TypeAdapter[Answer | CreatedTask] = TypeAdapter(
    Annotated[
        Annotated[Answer, Tag("result")] | Annotated[CreatedTask, Tag("task")],
        Discriminator(lambda answer: "task" if is_task(answer) else "result"),
    ]
)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A call of another server's tool.

    Attributes:
        name: The server's own name of the tool.
        arguments: The caller's arguments.
        ask: Asks the caller the questions of a task.
        heard: Called on each progress report of a task.
        meta: The caller's metadata for the server.
        report: Receives progress; None if it is not wanted.
        level: The minimum log level that the caller wants; None if it set none.
    """

    name: str
    arguments: dict[str, Any]
    ask: Ask
    heard: Callable[[], None]
    meta: dict[str, Any] = field(default_factory=dict)
    report: ProgressReporter | None = None
    level: types.LoggingLevel | None = None

    async def send(
        self,
        connection: Connection,
        answers: types.InputResponses | None = None,
        state: str | None = None,
    ) -> Answer:
        """Makes the call once; follows a task until it ends.

        The result is not validated against the tool's output schema: that is up to the client.

        Args:
            connection: The connection to the server.
            answers: The answers to its earlier questions.
            state: Its state from then.

        Raises:
            pydantic.ValidationError: If the answer is invalid.
        """
        await self._have_logged(connection)
        request = self._request(connection, answers, state)
        try:
            return await self._send_request(connection.session, request)
        except MCPError as error:
            if error.code != types.HEADER_MISMATCH or not connection.is_modern:
                raise
            # Its arguments must also be sent in headers, by a schema that this connection has not
            # seen: list the tools, and repeat the call (2026-07-28, Streamable HTTP).
            if not await self._is_listed(connection.session):
                raise
        return await self._send_request(connection.session, request)

    async def _send_request(self, session: ClientSession, request: types.CallToolRequest) -> Answer:
        told = None if self.report is None else _to_callback(self.report)
        answer = await session.send_request(request, _ANSWER, progress_callback=told)
        if not isinstance(answer, CreatedTask):
            return answer
        return await Follower(session, self.ask, self.report, self.heard).result(answer)

    def _request(
        self,
        connection: Connection,
        answers: types.InputResponses | None,
        state: str | None,
    ) -> types.CallToolRequest:
        meta = dict(self.meta)
        if connection.is_modern and self.level is not None:
            meta[types.LOG_LEVEL_META_KEY] = self.level
        params = types.CallToolRequestParams(
            name=self.name, arguments=self.arguments, input_responses=answers, request_state=state
        )
        if meta:
            params.meta = meta  # type: ignore[assignment]  # an open map
        return types.CallToolRequest(params=params)

    async def _have_logged(self, connection: Connection) -> None:
        """Sets the client's log level at a server of the older protocols."""
        questions = connection.callbacks
        if self.level is None or connection.is_modern or not isinstance(questions, Questions):
            return
        if questions.level == self.level or not connection.client.server_capabilities.logging:
            return
        questions.level = self.level
        params = types.SetLevelRequestParams(level=self.level)
        await connection.session.send_request(
            types.SetLevelRequest(params=params), types.EmptyResult
        )

    async def _is_listed(self, session: ClientSession) -> bool:
        cursor: str | None = None
        for _ in range(MOST_PAGES):
            page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            if any(each.name == self.name for each in page.tools):
                return True
            cursor = page.next_cursor
            if cursor is None:
                break
        return False


def _to_callback(report: ProgressReporter) -> ProgressFnT:
    async def callback(progress: float, total: float | None, message: str | None) -> None:
        await report(progress, total, message)

    return callback


LONGEST = 2_000
"""Maximum length of a server's refusal."""

LONGEST_DATA = 500


def for_client(
    server: str, error: MCPError, client: types.ClientCapabilities | None
) -> MCPError | None:
    """Returns an error that the client handles itself; None if the model should get it.

    Args:
        server: The name of the server.
        error: The server's answer.
        client: What the client can be asked.
    """
    if error.code == types.URL_ELICITATION_REQUIRED:
        return _pages(server, error, client)
    if error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY or _is_of_state(error):
        return error
    return None


def refusal(server: str, error: MCPError) -> ToolError:
    """Converts a server's refusal to a failure of the call.

    Args:
        server: The name of the server.
        error: The server's answer.
    """
    said = encodable(error.error.message[:LONGEST]).rstrip(".")
    if error.error.data not in (None, ""):
        data = json.dumps(error.error.data, ensure_ascii=False, default=str)
        said += f" {encodable(data[:LONGEST_DATA])}"
    if error.code == types.INVALID_PARAMS:
        return InvalidArgumentsError(f"The server {server!r} rejected the arguments: {said}.")
    return UpstreamError(f"The server {server!r} refused: {said} (error {error.code}).")


def no_result(server: str, error: ValidationError) -> ToolError:
    """Converts an invalid answer to a failure of the call.

    Args:
        server: The name of the server.
        error: The validation error.
    """
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))[:LONGEST_DATA]
    return UpstreamError(
        f"The server {server!r} returned an invalid tool result: {where}: {first['msg']}."
    )


def _pages(
    server: str, error: MCPError, client: types.ClientCapabilities | None
) -> MCPError | None:
    """Returns the web pages that the user must visit first, as the client may show them."""
    try:
        asked = types.ElicitationRequiredErrorData.model_validate(error.error.data, by_name=False)
        pages = [present_page(server, each) for each in asked.elicitations]
    except (ValidationError, UnshowableError):
        return None
    if not (pages and can_ask(client, types.ElicitRequest(params=pages[0]))):
        return None
    return UrlElicitationRequiredError(pages, f"The server {server!r} needs you on a web page.")


def _is_of_state(error: MCPError) -> bool:
    """Returns whether a server rejects its returned state, in the form of the SDK's servers."""
    data = error.error.data
    said = data.get("reason") if isinstance(data, dict) else None
    return error.code == types.INVALID_PARAMS and said == "invalid_request_state"


async def call(
    upstream: Upstream, own_name: str, arguments: dict[str, Any], context: RequestContext
) -> ToolResult:
    """Calls a tool of another server and returns its answer.

    Args:
        upstream: The server.
        own_name: The server's own name of the tool.
        arguments: The caller's arguments.
        context: The context of the call.

    Raises:
        AnswersAwaitedError: If the client must answer first, and then retries the call.
    """
    relay = (
        context.link.relay if isinstance(context.link.relay, ClientRequest | FunctionRun) else None
    )
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
        if isinstance(relay, ClientRequest):  # functions handle the error themselves
            able = relay.ctx.session.client_capabilities
            relay.refusal = for_client(upstream.name, error, able)
        raise refusal(upstream.name, error) from error
    except ValidationError as error:
        raise no_result(upstream.name, error) from error
    return _result(answer, modern=relay is not None and relay.is_modern)


def _result(answer: types.CallToolResult, *, modern: bool) -> ToolResult:
    """Returns the answer unchanged, with the data to record; `modern` is protocol 2026-07-28."""
    text = "\n".join(each.text for each in answer.content if isinstance(each, types.TextContent))
    structured: dict[str, Any]
    if answer.is_error:
        failure = ToolFailure(error_type="upstream_failed", message=text)
        structured = failure.model_dump(mode="json")
    elif isinstance(answer.structured_content, dict):
        structured = answer.structured_content
    else:
        structured = {}
    structured, _, note = without_endless(structured)
    ours = with_forwarded_meta(answer if modern else _for_older(answer))
    media = tuple(_media(answer.content))
    return ToolResult(structured, text, bool(answer.is_error), media, verbatim=ours, added=note)


def _media(content: Sequence[types.ContentBlock]) -> Iterator[Media]:
    """Yields images and sounds for a combined answer; skips invalid ones."""
    for block in content:
        if isinstance(block, types.ImageContent | types.AudioContent):
            with suppress(ValueError):
                yield Media(block.type, b64decode(block.data), block.mime_type)


def _for_older(answer: types.CallToolResult) -> types.CallToolResult:
    """Converts the answer for a client until 2025-11-25, which accepts only objects.

    Any other structured value is added as text, unless the server did so itself, as it should
    (2026-07-28, Structured Content).
    """
    value = answer.structured_content
    if value is None or isinstance(value, dict):
        return answer
    told = [types.TextContent(text=json.dumps(value, ensure_ascii=False))]
    return answer.model_copy(update={"structured_content": None, "content": answer.content or told})

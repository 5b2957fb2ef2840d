"""Calls tools of other servers and processes their answers."""

from __future__ import annotations

import json
import time
from base64 import b64decode
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

import anyio
import mcp_types as types
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError, UrlElicitationRequiredError
from pydantic import Discriminator, Tag, TypeAdapter, ValidationError

from server.mcp.elicitation.client_requests import ClientRequest
from server.mcp.elicitation.questions import Relay, can_ask
from server.mcp.tasks import CancelParams, TaskParams, UpdateParams
from server.mcp.wire import wire_form, with_forwarded_meta
from server.settings.gateway import ServerSettings
from server.upstream.calling.exchange import Exchange
from server.upstream.calling.questions import UnshowableError, present_page
from server.upstream.calling.upstream_tasks import CancelTask, CreatedTask, GetTask, UpdateTask
from server.upstream.connections.connection import Connection
from server.upstream.safety.conversion import Invoke
from server.upstream.upstream import Upstream
from storage.index.bounded import BoundedDict
from tools.conversion.naming import exposed_name
from tools.conversion.results.jsonable import without_endless
from tools.core.content import Media
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError, ToolError, UpstreamError
from tools.core.registry import ToolRegistry, check_admitted
from tools.core.result import ToolFailure, ToolResult
from tools.core.unicode_safety import encodable

MOST_PAGES = 100
"""Maximum number of pages of a tool list that is requested again."""

LONGEST = 2_000
"""Maximum length of a server's refusal."""

LONGEST_DATA = 500

LEAVE_SECONDS = 2.0
"""Time for a server to receive a cancellation."""

Answer = types.CallToolResult | types.InputRequiredResult

_ANSWER: TypeAdapter[Answer | CreatedTask] = TypeAdapter(
    Annotated[
        Annotated[Answer, Tag("result")] | Annotated[CreatedTask, Tag("task")],
        Discriminator(lambda answer: "task" if answer.get("resultType") == "task" else "result"),
    ]
)


def caller_of(
    upstream: Upstream, registry: ToolRegistry, kept: KeptAnswers, own_name: str
) -> Invoke:
    """Returns the function that calls a tool, by its server's own name."""
    name = exposed_name(upstream.name, own_name)

    async def invoke(arguments: dict[str, Any], context: RequestContext) -> ToolResult:
        if not upstream.listed.is_set():  # only a cached definition is known
            await upstream.connection(context.session_id)  # connecting triggers the listing
            with anyio.move_on_after(upstream.settings.start_timeout):
                await upstream.listed.wait()
        # An approval may have taken long: it may be in quarantine by now, or removed.
        spec = registry.find(name, context.tool_set)
        check_admitted(spec, context.tool_set)
        way = context.link.relay
        relay = way if isinstance(way, Relay) else None
        call = _ToolCall(upstream, context, relay, (own_name, arguments))
        answer = await (_read(call, kept) if spec.read_only else _write(call, kept))
        return _result(answer, modern=relay is not None and relay.is_modern)

    return invoke


@dataclass(frozen=True, slots=True)
class _Kept:
    answer: types.CallToolResult
    ends: float


class KeptAnswers:
    """The answers of one server's tools that only read, until another tool of it is called."""

    MOST = 100
    LONGEST = 200_000
    """Maximum length of a kept answer as JSON."""

    def __init__(self, settings: ServerSettings) -> None:
        self.calls = 0  # how many calls may have changed what was read
        self._settings = settings
        self._kept: BoundedDict[tuple[object, ...], _Kept] = BoundedDict(self.MOST)

    def find(self, call: _ToolCall) -> types.CallToolResult | None:
        """Returns the answer to the same call, by the same identity in the same conversation."""
        found = self._kept.get(_key(call)) if self._kept else None
        if found is None or time.monotonic() >= found.ends:
            return None
        return found.answer.model_copy(deep=True)

    def put(self, call: _ToolCall, answer: types.CallToolResult) -> None:
        """Keeps an answer for as long as the settings say."""
        override = self._settings.tools.get(call.named[0])
        seconds = None if override is None else override.cache_seconds
        if seconds is None:
            seconds = self._settings.cache_seconds
        if seconds and not answer.is_error and len(answer.model_dump_json()) <= self.LONGEST:
            self._kept[_key(call)] = _Kept(answer, time.monotonic() + seconds)

    def forget(self) -> None:
        """Forgets all answers, and those to calls that are running."""
        self.calls += 1
        self._kept.clear()


def _key(call: _ToolCall) -> tuple[object, ...]:
    name, arguments = call.named
    given = json.dumps(arguments, sort_keys=True, default=str)
    return name, given, call.context.identity, call.context.session_id


async def _read(call: _ToolCall, kept: KeptAnswers) -> types.CallToolResult:
    found = kept.find(call)
    if found is None:
        calls = kept.calls
        found = await _call(call)
        if calls == kept.calls:
            kept.put(call, found)
    return found


async def _write(call: _ToolCall, kept: KeptAnswers) -> types.CallToolResult:
    try:
        return await _call(call)
    finally:
        kept.forget()


async def _call(call: _ToolCall) -> types.CallToolResult:
    """Calls a tool of another server, and returns its answer.

    Raises:
        AnswersAwaitedError: If the client must answer first, and then retries the call.
    """
    upstream, relay = call.upstream, call.relay
    if upstream.limits is not None:
        upstream.limits.take(call.context.session_id)
    try:
        return await call.result()
    except MCPError as error:
        is_functions = call.context.link.carrier is None  # which handle the error themselves
        if isinstance(relay, ClientRequest) and not is_functions:
            able = relay.ctx.session.client_capabilities
            relay.refusal = for_client(upstream.name, error, able)
        raise refusal(upstream.name, error) from error
    except ValidationError as error:
        raise no_result(upstream.name, error) from error


class _ToolCall(Exchange[types.CallToolResult]):
    """A call of another server's tool; a task that it becomes is followed until it ends."""

    async def send(
        self, connection: Connection, answers: types.InputResponses | None, state: str | None
    ) -> Answer:
        """Makes the call once.

        The result is not validated against the tool's output schema: that is up to the client.
        """
        try:
            return _with_refusals(await self._send_once(connection, answers, state), connection)
        except MCPError as error:
            if refused := connection.link.refusals(error.error.message):
                said = error.error.message.rstrip(".")
                error.error.message = f"{said}. {' '.join(refused)}"
            raise

    async def _send_once(
        self, connection: Connection, answers: types.InputResponses | None, state: str | None
    ) -> Answer:
        request = await self._make_request(connection, answers, state)
        session = connection.session
        try:
            answer = await self.request(session, request, _ANSWER)
        except MCPError as error:
            if error.code != types.HEADER_MISMATCH or not connection.is_modern:
                raise
            # Its arguments must also be sent in headers, by a schema that this connection has not
            # seen: list the tools, and repeat the call (2026-07-28, Streamable HTTP).
            if not await _is_listed(request.params.name, session):
                raise
            answer = await self.request(session, request, _ANSWER)
        return await self._follow(answer, session) if isinstance(answer, CreatedTask) else answer

    async def _make_request(
        self, connection: Connection, answers: types.InputResponses | None, state: str | None
    ) -> types.CallToolRequest:
        """Builds the request, and has a server of the older protocols log at the client's level."""
        name, arguments = self.named
        params = types.CallToolRequestParams(
            name=name, arguments=dict(arguments), input_responses=answers, request_state=state
        )
        if self.relay is not None:
            meta, level = self.relay.meta, self.relay.level
            if level is not None and connection.is_modern:
                meta = {**meta, types.LOG_LEVEL_META_KEY: level}
            elif level is not None:
                await _set_level(connection, level)
            if meta:
                params.meta = meta  # type: ignore[assignment]  # an open map
        return types.CallToolRequest(params=params)

    async def _follow(self, task: CreatedTask, session: ClientSession) -> types.CallToolResult:
        """Returns the result of a task; cancels the task if its caller is cancelled."""
        answered: set[str] = set()
        messages = 0
        try:
            while task.is_working:
                await anyio.sleep(task.pause)
                before = task.status_message
                task = await session.send_request(
                    GetTask(params=TaskParams(task_id=task.task_id)), CreatedTask
                )
                self.deadline.renew(self.upstream.settings.timeout)
                if self.report is not None and task.status_message not in {None, before}:
                    messages += 1
                    await self.report(messages, None, task.status_message)
                for key, question in task.questions(answered).items():
                    answer = await self.ask(question)
                    answered.add(key)
                    params = UpdateParams(
                        task_id=task.task_id, input_responses={key: wire_form(answer)}
                    )
                    await session.send_request(UpdateTask(params=params), types.EmptyResult)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(LEAVE_SECONDS, shield=True):
                cancel = CancelTask(params=CancelParams(task_id=task.task_id))
                await session.send_request(cancel, types.EmptyResult)
            raise
        if task.status == "cancelled":
            raise UpstreamError("The server cancelled the task that this call became.")
        if task.status == "failed":
            failed = types.ErrorData(code=types.INTERNAL_ERROR, message="The task failed.")
            raise MCPError.from_error_data(task.error or failed)
        return types.CallToolResult.model_validate(task.result, by_name=False)


def _with_refusals(answer: Answer, connection: Connection) -> Answer:
    """Adds what its confinement refused to a server to the error that it answered."""
    if not isinstance(answer, types.CallToolResult) or not answer.is_error:
        return answer
    refused = connection.link.refusals(_text_of(answer))
    notes = [types.TextContent(text=f"[{each}]") for each in refused]
    return answer.model_copy(update={"content": [*answer.content, *notes]}) if notes else answer


def _text_of(answer: types.CallToolResult) -> str:
    return "\n".join(each.text for each in answer.content if isinstance(each, types.TextContent))


async def _set_level(connection: Connection, level: types.LoggingLevel) -> None:
    callbacks = connection.callbacks
    if callbacks.level == level or not connection.client.server_capabilities.logging:
        return
    callbacks.level = level
    request = types.SetLevelRequest(params=types.SetLevelRequestParams(level=level))
    await connection.session.send_request(request, types.EmptyResult)


async def _is_listed(tool: str, session: ClientSession) -> bool:
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        if any(each.name == tool for each in page.tools):
            return True
        cursor = page.next_cursor
        if cursor is None:
            break
    return False


def for_client(
    server: str, error: MCPError, client: types.ClientCapabilities | None
) -> MCPError | None:
    """Returns an error that the client handles itself; None if the model should get it."""
    if error.code == types.URL_ELICITATION_REQUIRED:
        return _pages(server, error, client)
    data = error.error.data
    reason = data.get("reason") if isinstance(data, dict) else None
    # So the SDK's servers reject a state that the client returned.
    is_of_state = error.code == types.INVALID_PARAMS and reason == "invalid_request_state"
    is_for_client = is_of_state or error.code == types.MISSING_REQUIRED_CLIENT_CAPABILITY
    return error if is_for_client else None


def refusal(server: str, error: MCPError) -> ToolError:
    """Converts a server's refusal to a failure of the call."""
    said = encodable(error.error.message[:LONGEST]).rstrip(".")
    if error.error.data not in (None, ""):
        data = json.dumps(error.error.data, ensure_ascii=False, default=str)
        said += f" {encodable(data[:LONGEST_DATA])}"
    if error.code == types.INVALID_PARAMS:
        return InvalidArgumentsError(f"The server {server!r} rejected the arguments: {said}.")
    return UpstreamError(f"The server {server!r} refused: {said} (error {error.code}).")


def no_result(server: str, error: ValidationError) -> ToolError:
    """Converts an invalid answer to a failure of the call."""
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


def _result(answer: types.CallToolResult, *, modern: bool) -> ToolResult:
    """Returns the answer unchanged, with the data to record; `modern` is protocol 2026-07-28."""
    text = _text_of(answer)
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

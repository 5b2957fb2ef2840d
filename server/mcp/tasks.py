"""Long calls, answered with a job, or with a task of the protocol's extension.

https://modelcontextprotocol.io/seps/2663-tasks-extension
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError
from starlette.requests import Request

from server.mcp.elicitation.client_requests import ClientRequest
from server.mcp.elicitation.questions import Context, answer_type
from server.mcp.sessions import ClientRequests, Principal
from server.mcp.wire import wire_form
from storage.agent.jobs import KEPT_SECONDS, JobRecord, JobState
from tools.answers.task_reports import TaskReport
from tools.core.client import Parked
from tools.core.context import RequestContext
from tools.core.errors import NotFoundError
from tools.core.jobs import Job, Jobs, Outcome
from tools.core.result import ToolResult
from tools.core.unicode_safety import encodable

TASK_PATIENCE = 0.5
"""Seconds before a client that supports tasks gets one."""

POLL_MS = 1_000
"""Recommended poll interval for clients."""

Finished = types.CallToolResult | types.InputRequiredResult
Answer = Finished | dict[str, Any]

EXTENSION = "io.modelcontextprotocol/tasks"

MISSING = MCPError(
    types.MISSING_REQUIRED_CLIENT_CAPABILITY,
    f"The request does not declare the extension {EXTENSION}.",
    {"requiredCapabilities": {"extensions": {EXTENSION: {}}}},
)


class TaskParams(types.RequestParams):
    """Parameters that name a task."""

    task_id: str


class CancelParams(TaskParams):
    """Parameters that name a task to cancel."""


class UpdateParams(TaskParams):
    """Answers to a task's questions, by their keys."""

    input_responses: dict[str, Any]


def declares_tasks(ctx: Context) -> bool:
    """Returns whether the client accepts a task as an answer."""
    said = ctx.session.client_capabilities
    is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return is_modern and said is not None and EXTENSION in (said.extensions or {})


def check_header(ctx: Context, task_id: str) -> None:
    """Rejects a request over HTTP whose routing header names another task."""
    if not isinstance(ctx.request, Request):
        return
    if decode_header_value(ctx.request.headers.get(MCP_NAME_HEADER)) != task_id:
        raise MCPError(
            types.HEADER_MISMATCH,
            f"The header {MCP_NAME_HEADER} does not match the request's taskId.",
        )


def _outcome(result: ToolResult, finish: Callable[[ToolResult], Finished]) -> Outcome:
    try:
        answer = finish(result)
    except MCPError as refusal:
        error = refusal.error
        return Outcome(result, refusal, lambda: {"error": wire_form(error)})
    return Outcome(result, answer, lambda: {"result": wire_form(answer)})


def created(record: JobRecord) -> dict[str, Any]:
    """Returns the answer to a call that continues as a task."""
    return {"resultType": "task", **_task(record, "working")}


def detailed(record: JobRecord, asked: Mapping[str, types.InputRequest]) -> dict[str, Any]:
    """Returns the state of a task, with its questions or its result."""
    if record.state is JobState.WORKING:
        if not asked:
            return _task(record, "working")
        requests = {key: wire_form(each) for key, each in asked.items()}
        return {**_task(record, "input_required"), "inputRequests": requests}
    if record.state is JobState.CANCELLED:
        return _task(record, "cancelled")
    internal = {"error": _internal(record)}
    answer = (record.result and json.loads(record.result)["answer"]) or internal
    return {**_task(record, "failed" if "error" in answer else "completed"), **answer}


def _task(record: JobRecord, status: str) -> dict[str, Any]:
    last = record.ended or record.progress.heard
    said = f"It waits for an answer: {record.awaits}" if record.awaits else record.progress.message
    task = {
        "taskId": record.id,
        "status": status,
        "createdAt": _instant(record.began),
        "lastUpdatedAt": _instant(last),
        "ttlMs": int(((record.ended or time.time()) - record.began + KEPT_SECONDS) * 1_000),
        "pollIntervalMs": POLL_MS,
    }
    return {**task, "statusMessage": encodable(said)} if said else task


def _internal(record: JobRecord) -> dict[str, Any]:
    lost = record.state is JobState.LOST
    said = "The process that ran it ended." if lost else "It failed."
    return {"code": types.INTERNAL_ERROR, "message": said}


def _instant(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


class Tasks:
    """Makes calls that may take long; handles `tasks/get`, `tasks/update` and `tasks/cancel`."""

    def __init__(self, jobs: Jobs, requests: ClientRequests) -> None:
        self.jobs = jobs
        self._requests = requests

    def register(self, server: Server[Any]) -> None:
        """Registers the methods and the extension's capability."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/update", UpdateParams, self._update)
        server.add_request_handler("tasks/cancel", CancelParams, self._cancel)

    async def make(
        self,
        request: ClientRequest,
        context: RequestContext,
        execute: Callable[[RequestContext], Awaitable[ToolResult]],
        finish: Callable[[ToolResult], Finished],  # converts the result to the answer
        tell: Callable[[TaskReport], Answer],  # answers a client that does not support tasks
    ) -> Answer:
        """Makes a call; answers with its result, or with a job if it takes too long."""
        job = Job(context.identity, context.session_id, request, context.report_progress)
        request.may_last = job.may_last

        async def work() -> Outcome:
            try:
                result = await execute(context.reporting(job.report))
                return _outcome(result, finish)
            finally:
                request.end()

        as_task = declares_tasks(request.ctx)
        patience = min(TASK_PATIENCE, self.jobs.patience) if as_task else self.jobs.patience
        record = await self.jobs.patiently(job, work, patience)
        if record is not None:
            return created(record) if as_task else tell(TaskReport.of(record))
        if job.outcome is None:
            raise job.error or MCPError(types.INTERNAL_ERROR, "Toolcrib is shutting down.")
        if isinstance(job.outcome.answer, MCPError):
            raise job.outcome.answer
        answer: Answer = job.outcome.answer
        return answer

    async def _get(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        """Returns the state of a task."""
        principal = self._check_request(ctx, params)
        try:
            record = await self.jobs.find(principal.identity, params.task_id)
        except NotFoundError as error:
            raise _unknown(error) from error
        return detailed(record, self._open_questions(principal, params.task_id))

    async def _update(self, ctx: Context, params: UpdateParams) -> dict[str, Any]:
        """Answers a task's questions; ignores answers without a question."""
        principal = self._check_request(ctx, params)
        try:
            await self.jobs.find(principal.identity, params.task_id)
        except NotFoundError as error:
            raise _unknown(error) from error
        answers = {
            key: _answer(request, params.input_responses[key])
            for key, request in self._open_questions(principal, params.task_id).items()
            if key in params.input_responses
        }
        if (parked := self._parked(principal, params.task_id)) is not None:
            parked.answer(answers)
        return {}

    async def _cancel(self, ctx: Context, params: CancelParams) -> dict[str, Any]:
        """Cancels a task; has no effect on one that has ended."""
        principal = self._check_request(ctx, params)
        try:
            await self.jobs.cancel(principal.identity, params.task_id)
        except NotFoundError as error:
            raise _unknown(error) from error
        return {}

    def _check_request(self, ctx: Context, params: TaskParams) -> Principal:
        """Checks a request; returns the identity whose tasks it may use."""
        if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            raise MCPError(types.METHOD_NOT_FOUND, "Method not found", ctx.method)
        if not declares_tasks(ctx):
            raise MISSING
        check_header(ctx, params.task_id)
        return self._requests.principal_of(ctx)

    def _parked(self, principal: Principal, task_id: str) -> Parked | None:
        """Returns the questions of a task in this process, if a user can be asked."""
        job = self.jobs.here(principal.identity, task_id)
        return None if job is None or principal.is_delegated else job.parked

    def _open_questions(self, principal: Principal, task_id: str) -> Mapping[str, Any]:
        """Returns the open questions of a task in this process by key."""
        parked = self._parked(principal, task_id)
        return {} if parked is None else parked.open_questions


def _answer(request: types.InputRequest, given: object) -> types.InputResponse:
    """Parses the answer to a question."""
    try:
        answer: types.InputResponse = answer_type(request).model_validate(given, by_name=False)
    except ValidationError as error:
        raise MCPError(
            types.INVALID_PARAMS,
            encodable(f"An input response does not match its request: {error}"),
        ) from error
    return answer


def _unknown(error: NotFoundError) -> MCPError:
    return MCPError(types.INVALID_PARAMS, encodable(error.message))

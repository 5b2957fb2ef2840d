"""Tasks: the extension's methods by which clients poll jobs."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from server.mcp.elicitation.channels import answer_type
from server.mcp.elicitation.client_requests import ClientRequests
from server.mcp.sessions import Principal
from server.mcp.tasks.extension import (
    EXTENSION,
    MISSING,
    CancelParams,
    TaskParams,
    UpdateParams,
    check_header,
    declares_tasks,
)
from server.mcp.tasks.long_calls import LongCalls, ParkedQuestions, detailed
from tools.core.errors import NotFoundError
from tools.core.unicode_safety import encodable

Context = ServerRequestContext[Any, Any]


class Tasks:
    """Handles `tasks/get`, `tasks/update` and `tasks/cancel`."""

    def __init__(self, long_calls: LongCalls, requests: ClientRequests) -> None:
        self.long_calls = long_calls
        self._jobs = long_calls.jobs
        self._requests = requests

    def register(self, server: Server[Any]) -> None:
        """Registers the methods and the extension's capability."""
        server.extensions[EXTENSION] = {}
        server.add_request_handler("tasks/get", TaskParams, self._get)
        server.add_request_handler("tasks/update", UpdateParams, self._update)
        server.add_request_handler("tasks/cancel", CancelParams, self._cancel)

    async def _get(self, ctx: Context, params: TaskParams) -> dict[str, Any]:
        """Returns the state of a task."""
        principal = self._check_request(ctx, params)
        try:
            record = await self._jobs.find(principal.identity, params.task_id)
        except NotFoundError as error:
            raise _unknown(error) from error
        return detailed(record, self._open_questions(principal, params.task_id))

    async def _update(self, ctx: Context, params: UpdateParams) -> dict[str, Any]:
        """Answers a task's questions; ignores answers without a question."""
        principal = self._check_request(ctx, params)
        try:
            await self._jobs.find(principal.identity, params.task_id)
        except NotFoundError as error:
            raise _unknown(error) from error
        answers = {
            key: _answer(request, params.input_responses[key])
            for key, request in self._open_questions(principal, params.task_id).items()
            if key in params.input_responses
        }
        if (questions := self._questions(principal, params.task_id)) is not None:
            questions.request.suspended.answer(answers)
        return {}

    async def _cancel(self, ctx: Context, params: CancelParams) -> dict[str, Any]:
        """Cancels a task; has no effect on one that has ended."""
        principal = self._check_request(ctx, params)
        try:
            await self._jobs.cancel(principal.identity, params.task_id)
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

    def _questions(self, principal: Principal, task_id: str) -> ParkedQuestions | None:
        """Returns the questions of a task in this process, if a user can be asked."""
        if principal.is_delegated:
            return None
        job = self._jobs.here(principal.identity, task_id)
        return job.asking if job is not None and isinstance(job.asking, ParkedQuestions) else None

    def _open_questions(self, principal: Principal, task_id: str) -> dict[str, types.InputRequest]:
        """Returns the open questions of a task in this process by key."""
        questions = self._questions(principal, task_id)
        return {} if questions is None else questions.request.suspended.open_questions


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

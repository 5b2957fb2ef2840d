"""Follows tasks of other servers until they end; their ids stay here.

https://modelcontextprotocol.io/seps/2663-tasks-extension
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal

import anyio
import mcp_types as types
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import Field, FiniteFloat, TypeAdapter

from server.mcp.tasks.extension import EXTENSION, CancelParams, TaskParams, UpdateParams
from server.mcp.wire import wire_form
from tools.core.client import ProgressReporter
from tools.core.errors import UpstreamError

FIRST_POLL = 1.0
LONGEST_POLL = 10.0
SHORTEST_POLL = 0.05
"""Seconds between polls: without an interval from the server, and the limits of one."""

LEAVE_SECONDS = 2.0
"""Time for a server to receive a cancellation."""

Ask = Callable[[types.InputRequest], Awaitable[types.InputResponse]]

_REQUESTS: TypeAdapter[types.InputRequests] = TypeAdapter(types.InputRequests)


class CreatedTask(types.Result):
    """A server's answer instead of a result, with the state of the task."""

    task_id: str
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    status_message: str | None = None
    poll_interval_ms: FiniteFloat | None = None
    input_requests: dict[str, Any] = Field(default_factory=dict)
    result: dict[str, Any] | None = None
    error: types.ErrorData | None = None


class _Get(types.Request[TaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    name_param = "taskId"


class _Update(types.Request[UpdateParams, Literal["tasks/update"]]):
    method: Literal["tasks/update"] = "tasks/update"
    name_param = "taskId"


class _Cancel(types.Request[CancelParams, Literal["tasks/cancel"]]):
    method: Literal["tasks/cancel"] = "tasks/cancel"
    name_param = "taskId"


class _TaskResult(types.Result):
    """A task as the result of a call, in the form that the SDK's client needs."""

    result_type: Literal["task"] = "task"


class KnowsTasks(ClientExtension):
    """Declares support for tasks in the SDK's client; callers follow the tasks themselves."""

    identifier = EXTENSION

    def claims(self) -> Sequence[ResultClaim[_TaskResult]]:
        """Returns the shape of a task, so that only servers of 2026-07-28 see the declaration."""
        return [ResultClaim(result_type="task", model=_TaskResult, resolve=_never_resolve)]


async def _never_resolve(_task: _TaskResult, _context: ClaimContext) -> types.CallToolResult:
    raise NotImplementedError


def is_task(answer: Mapping[str, Any]) -> bool:
    """Returns whether a server's answer is a task."""
    return answer.get("resultType") == "task"


class Follower:
    """Follows a task until it ends, and cancels it if its caller is cancelled.

    Args:
        session: The session with its server.
        ask: Asks the client the questions of the task.
        report: Receives its status messages; None if they are not wanted.
        heard: Called on each answer of the server.
    """

    def __init__(
        self,
        session: ClientSession,
        ask: Ask,
        report: ProgressReporter | None,
        heard: Callable[[], None],
    ) -> None:
        self._session = session
        self._ask = ask
        self._report = report
        self._heard = heard
        self._said = 0
        self._answered: set[str] = set()

    async def result(self, task: CreatedTask) -> types.CallToolResult:
        """Returns the result of a task.

        Raises:
            pydantic.ValidationError: If the result is invalid.
        """
        try:
            while task.status in {"working", "input_required"}:
                task = await self._next(task)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(LEAVE_SECONDS, shield=True):
                await self._cancel(task.task_id)
            raise
        if task.status == "cancelled":
            raise UpstreamError("The server cancelled the task that this call became.")
        if task.status == "failed":
            failed = types.ErrorData(code=types.INTERNAL_ERROR, message="The task failed.")
            raise MCPError.from_error_data(task.error or failed)
        return types.CallToolResult.model_validate(task.result, by_name=False)

    async def _next(self, task: CreatedTask) -> CreatedTask:
        """Polls the task after a pause, and answers its questions."""
        await anyio.sleep(_pause(task))
        params = TaskParams(task_id=task.task_id)
        now = await self._session.send_request(_Get(params=params), CreatedTask)
        self._heard()
        if self._report is not None and now.status_message not in (None, task.status_message):
            self._said += 1
            await self._report(self._said, None, now.status_message)
        asked = {
            key: each
            for key, each in _REQUESTS.validate_python(now.input_requests, by_name=False).items()
            if key not in self._answered
        }
        for key, each in asked.items():
            await self._answer(task.task_id, key, await self._ask(each))
        return now

    async def _answer(self, task_id: str, key: str, answer: types.InputResponse) -> None:
        self._answered.add(key)
        params = UpdateParams(task_id=task_id, input_responses={key: wire_form(answer)})
        await self._session.send_request(_Update(params=params), types.EmptyResult)

    async def _cancel(self, task_id: str) -> None:
        params = CancelParams(task_id=task_id)
        await self._session.send_request(_Cancel(params=params), types.EmptyResult)


def _pause(task: CreatedTask) -> float:
    wanted = FIRST_POLL if task.poll_interval_ms is None else task.poll_interval_ms / 1_000
    return min(max(wanted, SHORTEST_POLL), LONGEST_POLL)

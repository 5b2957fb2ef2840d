"""Tasks of other servers: each is followed until it has ended, and its id stays here.

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
"""Seconds between two looks at a task, where its server says none, or too many or too few."""

LEAVE_SECONDS = 2.0
"""How long a server may take to hear that a task is cancelled."""

Ask = Callable[[types.InputRequest], Awaitable[types.InputResponse]]

_REQUESTS: TypeAdapter[types.InputRequests] = TypeAdapter(types.InputRequests)


class CreatedTask(types.Result):
    """What a server answers in the place of a result, and how far it is then."""

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


class _Claimed(types.Result):
    """What a call is answered that goes on as a task, as a client of the SDK has to know it."""

    result_type: Literal["task"] = "task"


class KnowsTasks(ClientExtension):
    """Has a client of the SDK say that it knows tasks; whoever makes a call follows them itself."""

    identifier = EXTENSION

    def claims(self) -> Sequence[ResultClaim[_Claimed]]:
        """The shape of a task, so that it is said to servers of 2026-07-28 alone."""
        return [ResultClaim(result_type="task", model=_Claimed, resolve=_followed_elsewhere)]


async def _followed_elsewhere(_task: _Claimed, _context: ClaimContext) -> types.CallToolResult:
    raise NotImplementedError


def is_task(answer: Mapping[str, Any]) -> bool:
    """Whether what a server answers is a task."""
    return answer.get("resultType") == "task"


class Follower:
    """Follows a task until it has ended, and cancels it where nobody waits any more.

    Args:
        session: The session with its server.
        ask: Has the client answer what the task asks.
        report: Hears what it says of itself; None where nobody wants to.
        heard: Called each time that the server answers.
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
        """What comes of a task.

        Raises:
            pydantic.ValidationError: If what comes of it is no result.
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
        """How far it is after a while, with all answered that it asks by now."""
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

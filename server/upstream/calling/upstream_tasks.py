"""Tasks of other servers on the wire; their ids stay here.

https://modelcontextprotocol.io/seps/2663-tasks-extension
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

import mcp_types as types
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from pydantic import Field, FiniteFloat, TypeAdapter

from server.mcp.tasks import EXTENSION, CancelParams, TaskParams, UpdateParams

FIRST_POLL = 1.0
LONGEST_POLL = 10.0
SHORTEST_POLL = 0.05
"""Seconds between polls: without an interval from the server, and the limits of one."""

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

    @property
    def is_working(self) -> bool:
        """Whether it has not ended."""
        return self.status in {"working", "input_required"}

    @property
    def pause(self) -> float:
        """Seconds until the next poll."""
        wanted = FIRST_POLL if self.poll_interval_ms is None else self.poll_interval_ms / 1_000
        return min(max(wanted, SHORTEST_POLL), LONGEST_POLL)

    def questions(self, answered: Collection[str]) -> types.InputRequests:
        """Returns its questions without those that were answered."""
        asked = _REQUESTS.validate_python(self.input_requests, by_name=False)
        return {key: each for key, each in asked.items() if key not in answered}


class GetTask(types.Request[TaskParams, Literal["tasks/get"]]):
    """Requests the state of a task."""

    method: Literal["tasks/get"] = "tasks/get"
    name_param = "taskId"


class UpdateTask(types.Request[UpdateParams, Literal["tasks/update"]]):
    """Sends answers to a task."""

    method: Literal["tasks/update"] = "tasks/update"
    name_param = "taskId"


class CancelTask(types.Request[CancelParams, Literal["tasks/cancel"]]):
    """Cancels a task."""

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

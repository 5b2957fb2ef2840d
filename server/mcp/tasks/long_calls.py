"""Long calls, answered with a job or a task before they end."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from server.mcp.elicitation.channels import ANSWER_SECONDS
from server.mcp.elicitation.client_requests import ClientRequest
from server.mcp.elicitation.function_run import FunctionRun
from server.mcp.sessions import can_ask
from server.mcp.tasks.extension import declares_tasks
from server.mcp.visible import visible
from server.mcp.wire import wire_form
from storage.agent.jobs import KEPT_SECONDS, JobRecord, JobState
from tools.answers.task_reports import TaskReport
from tools.core.context import RequestContext
from tools.core.jobs.job import Job, Outcome, answer_in
from tools.core.jobs.jobs import Jobs
from tools.core.result import ToolResult
from tools.core.unicode_safety import encodable

TASK_PATIENCE = 0.5
"""Seconds before a client that supports tasks gets one."""

AWAITED_CHARACTERS = 300
"""Length of a job's question in text for clients that cannot be asked."""

Finished = types.CallToolResult | types.InputRequiredResult
Answer = Finished | dict[str, Any]


@dataclass(frozen=True, slots=True)
class ParkedQuestions:
    """A call's questions while its client is away."""

    request: ClientRequest

    @property
    def awaits(self) -> str:
        """The unanswered questions as text; empty if there are none."""
        if not self.request.is_away:
            return ""
        return "; ".join(map(_words, self.request.suspended.open_questions.values()))

    @property
    def is_with_client(self) -> bool:
        """Whether the client has a question that it answers while it waits."""
        return bool(self.request.asked)

    def leave(self) -> None:
        """Defers further questions until the client polls the job."""
        self.request.leave()

    async def put(self, relay: object) -> bool:
        """Asks the client of another call; returns whether it answered anything.

        Raises:
            AnswersAwaitedError: If the client must answer first, and then retries the call.
        """
        if not isinstance(relay, ClientRequest | FunctionRun):
            return False
        suspended = self.request.suspended
        questions = {
            key: each
            for key, each in suspended.open_questions.items()
            if can_ask(relay.capabilities, each)
        }
        if not questions:
            return False
        answers = await relay.ask(questions, seconds=ANSWER_SECONDS)
        given = {
            key: each for key, each in answers.items() if not isinstance(each, types.ErrorData)
        }
        return bool(suspended.answer(given))


class LongCalls:
    """Makes calls that may take long."""

    def __init__(self, jobs: Jobs) -> None:
        self.jobs = jobs

    async def make(
        self,
        request: ClientRequest,
        context: RequestContext,
        execute: Callable[[RequestContext], Awaitable[ToolResult]],
        finish: Callable[[ToolResult], Finished],
        tell: Callable[[TaskReport], Answer],
    ) -> Answer:
        """Makes a call; answers with its result, or with a job if it takes too long.

        Args:
            finish: Converts the result to the answer.
            tell: Converts a job to the answer for a client that does not support tasks.
        """
        asking = ParkedQuestions(request)
        job = Job(context.identity, context.session_id, asking, context.report_progress)
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


def _outcome(result: ToolResult, finish: Callable[[ToolResult], Finished]) -> Outcome:
    try:
        answer = finish(result)
    except MCPError as refusal:
        error = refusal.error
        return Outcome(result, refusal, lambda: {"error": wire_form(error)})
    return Outcome(result, answer, lambda: {"result": wire_form(answer)})


def _words(request: types.InputRequest) -> str:
    """Describes a question for clients that cannot answer it."""
    match request:
        case types.ElicitRequest(params=params):
            said = params.message
        case types.CreateMessageRequest():
            said = "a question to the client's model"
        case _:
            said = "which directories the client works in"
    return visible(said)[:AWAITED_CHARACTERS]


POLL_MS = 1_000
"""Recommended poll interval for clients."""


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
    answer = answer_in(record) or {"error": _internal(record)}
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

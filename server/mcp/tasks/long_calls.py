"""Long calls: those that are answered with a job, or a task, before they have ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from server.mcp.asking.channels import ANSWER_SECONDS, can_ask
from server.mcp.asking.client_requests import ClientRequest
from server.mcp.asking.function_run import FunctionRun
from server.mcp.tasks.extension import declares_tasks
from server.mcp.tasks.wire import created
from server.mcp.visible import visible
from server.mcp.wire import wire_form
from tools.answers.task_reports import TaskReport
from tools.core.context import RequestContext
from tools.core.jobs.job import Job, Outcome
from tools.core.jobs.jobs import Jobs
from tools.core.registry import ToolRegistry
from tools.core.result import ToolResult

TASK_PATIENCE = 0.5
"""Seconds after which a client that knows tasks is answered with one."""

AWAITED_CHARACTERS = 300
"""Of what a job asks, that are told to whoever cannot be asked."""

Finished = types.CallToolResult | types.InputRequiredResult
Answer = Finished | dict[str, Any]


@dataclass(frozen=True, slots=True)
class ParkedQuestions:
    """What a call asks its client, which is away.

    Attributes:
        request: The call.
    """

    request: ClientRequest

    @property
    def awaits(self) -> str:
        """What has to be answered first, in words; empty if nothing."""
        if not self.request.is_away:
            return ""
        return "; ".join(map(_words, self.request.suspended.open_questions.values()))

    @property
    def is_with_client(self) -> bool:
        """Whether the client has a question that it answers while it waits."""
        return bool(self.request.asked)

    def leave(self) -> None:
        """Has what is asked from now on wait for whoever looks at the job."""
        self.request.leave()

    async def put(self, relay: object) -> bool:
        """Asks the client of another call; whether it answered anything.

        Raises:
            AnswersAwaitedError: If it must answer first, and then makes the call again.
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
    """Makes calls that may take long.

    Args:
        jobs: Where they go on.
        registry: The tools.
    """

    def __init__(self, jobs: Jobs, registry: ToolRegistry) -> None:
        self.jobs = jobs
        self._registry = registry

    def may_be(self, name: str) -> bool:
        """Whether a call of this tool may be one; what is not known yet may come to be one."""
        spec = self._registry.get(name)
        return self.jobs.is_running and (spec is None or spec.becomes_job or spec.passes_on)

    async def make(
        self,
        request: ClientRequest,
        context: RequestContext,
        execute: Callable[[RequestContext], Awaitable[ToolResult]],
        finish: Callable[[ToolResult], Finished],
        tell: Callable[[TaskReport], Answer],
    ) -> Answer:
        """Makes a call; as long as its client waits, it is answered when it has ended.

        Args:
            request: The call.
            context: What it is given of its client.
            execute: Makes it.
            finish: Makes the answer of its result.
            tell: Makes that of a job, for a client that does not know tasks.
        """
        asking = ParkedQuestions(request)
        job = Job(context.identity, context.session_id, asking, context.report_progress)
        request.may_last = job.may_last

        async def work() -> Outcome:
            try:
                result = await execute(replace(context, report_progress=job.report))
                return _outcome(result, finish)
            finally:
                request.end()

        as_task = declares_tasks(request.ctx)
        patience = min(TASK_PATIENCE, self.jobs.patience) if as_task else self.jobs.patience
        record = await self.jobs.patiently(job, work, patience)
        if record is not None:
            return created(record) if as_task else tell(TaskReport.of(record))
        if job.outcome is None:
            raise job.error or MCPError(types.INTERNAL_ERROR, "Toolcrib is ending.")
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
    """What is asked, for whoever only reads that it is."""
    match request:
        case types.ElicitRequest(params=params):
            said = params.message
        case types.CreateMessageRequest():
            said = "a question to the client's model"
        case _:
            said = "which directories the client works in"
    return visible(said)[:AWAITED_CHARACTERS]

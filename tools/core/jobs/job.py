"""Defines a job: a call that continues after its caller got a job id."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

import anyio

from storage.agent.jobs import JobRecord, JobState, Progress
from storage.models import Identity
from tools.core.client import ProgressReporter
from tools.core.result import ToolResult, decode_result, encode_result

MESSAGE_CHARACTERS = 500
"""Maximum characters of a job's progress message that are kept."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call.

    Attributes:
        encode: Converts the answer to plain JSON.
    """

    result: ToolResult
    answer: Any
    encode: Callable[[], Any]


class Asking(Protocol):
    """The questions of a call to its client."""

    @property
    def awaits(self) -> str:
        """A description of the open question; empty if there is none."""

    @property
    def is_with_client(self) -> bool:
        """Returns whether the client is answering a question while it waits."""

    def leave(self) -> None:
        """Keeps further questions for the client that next polls the job."""

    async def put(self, relay: object) -> bool:
        """Asks the client of another call; returns whether it answered any question.

        Raises:
            AnswersAwaitedError: If the client must answer first, and then repeats the call.
        """


class Job:
    """A call that its client waits for, and that may then continue in the background.

    Attributes:
        id: Its unguessable id.
        lasting: Set once a tool runs in it that may become a job.
        ended: Set once it has ended.
        changed: Set on each change, and then replaced by a new event.
        outcome: Its outcome; None while it works, and if it was cancelled.
        error: The exception that it failed with, instead of a result.
        is_kept: Whether it continues in the background.
    """

    def __init__(
        self, identity: Identity, session_id: str, asking: Asking, tell: ProgressReporter
    ) -> None:
        self.id = secrets.token_hex(16)
        self.identity = identity
        self.session_id = session_id
        self.asking = asking
        self.lasting = anyio.Event()
        self.ended = anyio.Event()
        self.changed = anyio.Event()
        self.outcome: Outcome | None = None
        self.error: Exception | None = None
        self.is_kept = False
        self._tell = tell
        self._scope = anyio.CancelScope()
        self._tool = ""
        self._began = time.time()
        self._ended_at: float | None = None
        self._progress = Progress(None, None, "", self._began)
        self._result = ""

    def may_last(self, tool: str) -> None:
        """Records the running tool, which may continue in the background."""
        self._tool = tool
        self.lasting.set()
        self.wake()

    async def report(self, done: float, total: float | None, message: str | None) -> None:
        """Records the progress, and reports it to the waiting caller."""
        said = (message or "")[:MESSAGE_CHARACTERS]
        self._progress = Progress(done, total, said, time.time())
        self.wake()
        if not self.is_kept:
            await self._tell(done, total, message)

    async def run(self, work: Callable[[], Awaitable[Outcome]]) -> None:
        """Runs the work and stores its outcome."""
        try:
            with self._scope:
                outcome = await work()
                self._result = _written(outcome) if self.is_kept else ""
                self.outcome = outcome
        except Exception as error:  # noqa: BLE001  # it is raised where the call is awaited
            self.error = error
        finally:
            self._ended_at = time.time()
            self.ended.set()
            self.wake()

    def cancel(self) -> None:
        """Cancels the work and everything it started."""
        self._scope.cancel()

    def wake(self) -> None:
        """Wakes everyone who waits for a change."""
        self.changed.set()
        self.changed = anyio.Event()

    def record(self, process: str) -> JobRecord:
        """Returns the job's current record."""
        return JobRecord(
            id=self.id,
            identity=self.identity,
            tool=self._tool,
            process=process,
            state=self._state,
            began=self._began,
            progress=self._progress,
            ended=self._ended_at,
            awaits="" if self.ended.is_set() else self.asking.awaits,
            result=self._result,
        )

    @property
    def _state(self) -> JobState:
        if not self.ended.is_set():
            return JobState.WORKING
        if self.outcome is None:
            return JobState.CANCELLED if self.error is None else JobState.FAILED
        return JobState.FAILED if self.outcome.result.is_error else JobState.COMPLETED


def _written(outcome: Outcome) -> str:
    return json.dumps({"result": encode_result(outcome.result), "answer": outcome.encode()})


def result_in(record: JobRecord) -> ToolResult | None:
    """Returns the result of an ended job, or None."""
    return decode_result(json.loads(record.result)["result"]) if record.result else None


def answer_in(record: JobRecord) -> Any:  # noqa: ANN401  # plain JSON
    """Returns the JSON answer for the client of a job, or None."""
    return json.loads(record.result)["answer"] if record.result else None

"""A job: a call that goes on after its caller was told to look again."""

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
"""Of what a job says about how far it is, that are kept."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call.

    Attributes:
        result: The tool's own.
        answer: What its client is answered.
        encode: Makes plain JSON of the answer.
    """

    result: ToolResult
    answer: Any
    encode: Callable[[], Any]


class Asking(Protocol):
    """What a call asks its client."""

    @property
    def awaits(self) -> str:
        """What has to be answered first, in words; empty if nothing."""

    @property
    def is_with_client(self) -> bool:
        """Whether the client has a question that it answers while it waits."""

    def leave(self) -> None:
        """Has what is asked from now on wait for whoever looks at the job."""

    async def put(self, relay: object) -> bool:
        """Asks the client of another call; whether it answered anything.

        Args:
            relay: The way to that client.

        Raises:
            AnswersAwaitedError: If it must answer first, and then makes the call again.
        """


class Job:
    """A call that goes on for as long as its caller has patience, and then by itself.

    Args:
        identity: Whose it is.
        session_id: In which conversation it was called.
        asking: What it asks its client.
        tell: Tells its caller how far it is, as long as that waits.

    Attributes:
        id: Names it; nobody guesses it.
        identity: Whose it is.
        session_id: In which conversation it was called.
        asking: What it asks its client.
        lasting: Set once a tool runs in it that may go on alone.
        ended: Set once it has ended.
        changed: Set when there is something new, and then another.
        outcome: What came of it; None while it works, and where it was cancelled.
        error: What it failed with beyond a result.
        is_kept: Whether it goes on alone.
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
        """Takes note of the tool that runs, which may go on alone."""
        self._tool = tool
        self.lasting.set()
        self.wake()

    async def report(self, done: float, total: float | None, message: str | None) -> None:
        """Takes note of how far it is, and tells its caller."""
        said = (message or "")[:MESSAGE_CHARACTERS]
        self._progress = Progress(done, total, said, time.time())
        self.wake()
        if not self.is_kept:
            await self._tell(done, total, message)

    async def run(self, work: Callable[[], Awaitable[Outcome]]) -> None:
        """Does the work; what comes of it is kept for whoever looks."""
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
        """Ends it, with all that it began."""
        self._scope.cancel()

    def wake(self) -> None:
        """Has everybody look who waits."""
        self.changed.set()
        self.changed = anyio.Event()

    def record(self, process: str) -> JobRecord:
        """What is kept of it by now.

        Args:
            process: The name of this one.
        """
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
    """The result of a job that has ended; None where there is none."""
    return decode_result(json.loads(record.result)["result"]) if record.result else None


def answer_in(record: JobRecord) -> Any:  # noqa: ANN401  # plain JSON
    """What the client of a job would have been answered, as JSON; None where there is nothing."""
    return json.loads(record.result)["answer"] if record.result else None

"""Jobs: calls that continue after their caller got a job id, in this process or another."""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from anyio.abc import TaskGroup

from storage.agent.jobs import JobRecord, JobState, Progress
from storage.errors import StorageError
from storage.locks import Presence
from storage.models import Identity
from tools.core.calling.nested import Background
from tools.core.client import Asking, Parked, ProgressReporter
from tools.core.errors import NotFoundError
from tools.core.result import ToolResult, decode_result, encode_result

if TYPE_CHECKING:
    from storage.library import Library

PATIENCE = 45.0
"""Seconds before a call is answered with a job: clients time out after 60, some after 50."""

MOST = 16
"""Maximum jobs of one user at once; the caller waits for further calls."""

BEAT = 0.5
"""Seconds between writes of progress, and checks for cancelled jobs."""

LOOK = 0.25
"""Seconds between checks of another process's job."""

ENDING_SECONDS = 5.0
"""Time limit for a job to end after its cancellation, before the caller is answered."""

SUGGESTED = 5

MESSAGE_CHARACTERS = 500
"""Maximum characters of a job's progress message that are kept."""

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a call."""

    result: ToolResult
    answer: Any
    encode: Callable[[], Any]  # converts the answer to plain JSON


class Job(Background[Outcome]):
    """A call that its client waits for, and that may then continue in the background.

    Its client waits for it until it is `parked`, and then polls it until it has `ended`.
    """

    def __init__(
        self, identity: Identity, session_id: str, asking: Asking, tell: ProgressReporter
    ) -> None:
        super().__init__()
        self.id = secrets.token_hex(16)  # its unguessable id
        self.identity = identity
        self.session_id = session_id
        # Its questions for the client that next polls it; None while its client waits.
        self.parked: Parked | None = None
        self.changed = anyio.Event()  # set on each change, and then replaced by a new event
        self._asking = asking
        self._tell = tell
        self._tool = ""  # the running tool, if its call may become a job
        self._began = time.time()
        self._ended_at: float | None = None
        self._progress = Progress(None, None, "", self._began)
        self._result = ""

    @property
    def may_be_left(self) -> bool:
        """Returns whether its client may be answered before it ends."""
        return bool(self._tool) and not self._asking.is_with_client

    def leave(self) -> None:
        """Continues without its client."""
        self.parked = self._asking.leave()

    def may_last(self, tool: str) -> None:
        """Records the running tool, which may continue in the background."""
        self._tool = tool
        self.wake()

    async def report(self, done: float, total: float | None, message: str | None) -> None:
        """Records the progress, and reports it to the waiting caller."""
        self._progress = Progress(done, total, (message or "")[:MESSAGE_CHARACTERS], time.time())
        self.wake()
        if self.parked is None:
            await self._tell(done, total, message)

    async def run(self, work: Callable[[], Awaitable[Outcome]]) -> None:
        """Runs the work and stores its outcome."""

        async def store() -> Outcome:
            try:
                outcome = await work()
                if self.parked is not None:
                    told = {"result": encode_result(outcome.result), "answer": outcome.encode()}
                    self._result = json.dumps(told)
            finally:
                self._ended_at = time.time()
            return outcome

        await super().run(store)

    def wake(self) -> None:
        """Wakes everyone who waits for a change."""
        self.changed.set()
        self.changed = anyio.Event()

    def record(self, process: str) -> JobRecord:
        """Returns the job's current record."""
        parked = None if self.ended.is_set() else self.parked
        return JobRecord(
            id=self.id,
            identity=self.identity,
            tool=self._tool,
            process=process,
            state=self._state,
            began=self._began,
            progress=self._progress,
            ended=self._ended_at,
            awaits="" if parked is None else parked.awaits,
            result=self._result,
        )

    @property
    def _state(self) -> JobState:
        if not self.ended.is_set():
            return JobState.WORKING
        if self.outcome is None:
            return JobState.CANCELLED if self.error is None else JobState.FAILED
        return JobState.FAILED if self.outcome.result.is_error else JobState.COMPLETED


def result_in(record: JobRecord) -> ToolResult | None:
    """Returns the result of an ended job, or None."""
    return decode_result(json.loads(record.result)["result"]) if record.result else None


class Jobs:
    """The jobs of all users."""

    def __init__(
        self,
        library: Library,
        patience: float = PATIENCE,  # seconds after which a call is answered with a job
        on_lost: Callable[[], None] = lambda: None,  # called when a process with jobs has died
    ) -> None:
        self.patience = patience
        self._on_lost = on_lost
        self._library = library
        self._presence = Presence(library.directory / "processes")
        self._group: TaskGroup | None = None
        self._kept: dict[str, Job] = {}
        self._any = anyio.Event()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Lets calls continue in the background until the block ends, which cancels them."""
        try:
            async with anyio.create_task_group() as group:
                self._group = group
                group.start_soon(self._watch)
                yield
                self._group = None
                group.cancel_scope.cancel()
        finally:
            self._group = None
            self._presence.end()

    @property
    def is_running(self) -> bool:
        """Returns whether calls can continue in the background."""
        return self._group is not None

    async def patiently(
        self, job: Job, work: Callable[[], Awaitable[Outcome]], patience: float
    ) -> JobRecord | None:
        """Runs the work of a call, and waits for it.

        Returns None once it has ended, or its record if it continues in the background, which it
        may do after so many seconds of patience.
        """
        if self._group is None:
            raise RuntimeError("Calls can become jobs only within Jobs.running().")
        self._group.start_soon(self._run, job, work)
        try:
            with anyio.move_on_after(patience):
                await job.ended.wait()
            while not (job.ended.is_set() or job.may_be_left):
                with anyio.move_on_after(LOOK):
                    await job.changed.wait()
            if not job.ended.is_set() and (record := await self._keep(job)) is not None:
                return record
            await job.ended.wait()
        except anyio.get_cancelled_exc_class():
            job.cancel()
            with anyio.CancelScope(shield=True):
                await job.ended.wait()
                if self._kept.pop(job.id, None) is not None:
                    await anyio.to_thread.run_sync(self._library.jobs.remove, job.id)
            raise
        return None

    async def find(self, identity: Identity, job_id: str) -> JobRecord:
        """Returns the current record of a job."""
        job = self.here(identity, job_id)
        if job is not None:
            return job.record(self._presence.name)
        return await anyio.to_thread.run_sync(self._stored, identity, job_id)

    def here(self, identity: Identity, job_id: str) -> Job | None:
        """Returns a job of this process; None if it belongs to another process or has ended."""
        job = self._kept.get(job_id)
        return job if job is not None and job.identity == identity else None

    async def follow(
        self,
        identity: Identity,
        job_id: str,
        *,
        seconds: float,
        report: ProgressReporter,
        relay: object,
    ) -> JobRecord:
        """Waits until a job ends or has a question without an answer, or for `seconds`.

        The client of `relay` gets the job's questions; see `Parked.put`.
        """
        until = anyio.current_time() + seconds
        told = None
        while True:
            record = await self.find(identity, job_id)
            if record.state is not JobState.WORKING:
                return record
            job = self.here(identity, job_id)
            if record.awaits and not (job and await _put_questions(job, relay)):
                return record
            if anyio.current_time() >= until:
                return record
            if record.progress.done is not None and record.progress != told:
                told = record.progress
                await report(record.progress.done, told.total, told.message or None)
            with anyio.move_on_after(min(LOOK, max(until - anyio.current_time(), 0))):
                await (anyio.sleep_forever() if job is None else job.changed.wait())

    async def cancel(self, identity: Identity, job_id: str) -> JobRecord:
        """Cancels a job in whichever process it runs; returns its record."""
        job = self.here(identity, job_id)
        if job is not None:
            job.cancel()
        else:
            await self.find(identity, job_id)
            await anyio.to_thread.run_sync(self._library.jobs.want_cancelled, identity, job_id)
        with anyio.move_on_after(ENDING_SECONDS):
            while (await self.find(identity, job_id)).state is JobState.WORKING:  # noqa: ASYNC110  # another process may work on it
                await anyio.sleep(LOOK)
        return await self.find(identity, job_id)

    async def end_session(self, session_id: str) -> None:
        """Cancels a session's jobs in this process, and waits for their end."""
        left = [job for job in self._kept.values() if job.session_id == session_id]
        for job in left:
            job.cancel()
        with anyio.move_on_after(ENDING_SECONDS):
            for job in left:
                await job.ended.wait()

    async def _keep(self, job: Job) -> JobRecord | None:
        """Moves a call to the background; returns None if it has ended or cannot."""
        user_id = job.identity.user_id
        if sum(each.identity.user_id == user_id for each in self._kept.values()) >= MOST:
            return None
        self._kept[job.id] = job
        record = job.record(self._presence.name)
        try:
            await anyio.to_thread.run_sync(self._add, record)
        except (StorageError, OSError) as error:
            _logger.warning("A long call cannot become a job, so its client waits: %s", error)
            del self._kept[job.id]
            return None
        if job.ended.is_set():
            await anyio.to_thread.run_sync(self._library.jobs.remove, job.id)
            self._kept.pop(job.id, None)
            return None
        job.leave()
        self._any.set()
        return record

    def _add(self, record: JobRecord) -> None:
        self._presence.begin()
        self._library.jobs.add(record)

    async def _run(self, job: Job, work: Callable[[], Awaitable[Outcome]]) -> None:
        try:
            await job.run(work)
        finally:
            if job.parked is not None:
                with anyio.CancelScope(shield=True):
                    await self._end(job)

    async def _end(self, job: Job) -> None:
        """Stores the outcome of a job; if that fails, only this process has it."""
        if job.error is not None:
            _logger.error("A job failed: %s", job.error, exc_info=job.error)
        try:
            record = job.record(self._presence.name)
            await anyio.to_thread.run_sync(self._library.jobs.end, record)
        except StorageError as error:
            _logger.warning(
                "The outcome of a job could not be stored and is lost when Toolcrib ends: %s", error
            )
        else:
            del self._kept[job.id]

    async def _watch(self) -> None:
        """Stores the progress of jobs, and cancels those that another process wants cancelled."""
        written: dict[str, JobRecord] = {}
        while True:
            await self._any.wait()
            while self._kept:
                await anyio.sleep(BEAT)
                records = [job.record(self._presence.name) for job in self._kept.values()]
                news = [each for each in records if written.get(each.id) != each]
                written = {each.id: each for each in records}
                try:
                    unwanted = await anyio.to_thread.run_sync(self._beat, news)
                except StorageError as error:
                    _logger.warning("The progress of jobs could not be stored: %s", error)
                    continue
                for each in unwanted:
                    if (job := self._kept.get(each)) is not None:
                        job.cancel()
            self._any = anyio.Event()

    def _beat(self, news: list[JobRecord]) -> list[str]:
        if news:
            self._library.jobs.beat(news)
        return self._library.jobs.unwanted(self._presence.name)

    def _stored(self, identity: Identity, job_id: str) -> JobRecord:
        """Returns a stored job, and marks it as lost if its process died."""
        jobs = self._library.jobs
        found = jobs.find(identity, job_id)
        if found is not None and found.state is JobState.WORKING and self._has_died(found):
            jobs.lose(found.process)
            self._on_lost()
            found = jobs.find(identity, job_id)
        if found is None:
            raise NotFoundError(
                f"You have no task {job_id!r}; results are kept for a day.",
                suggestions=[each.id for each in jobs.latest(identity, SUGGESTED)],
                next_actions=["Take the id that the call was answered with, or make it again."],
            )
        return found

    def _has_died(self, job: JobRecord) -> bool:
        return not (job.process == self._presence.name or self._presence.is_alive(job.process))


async def _put_questions(job: Job, relay: object) -> bool:
    """Asks a client a job's questions until they are answered; returns whether they were."""
    parked, answered = job.parked, False
    if parked is None:
        return False

    async def ask() -> None:
        nonlocal answered
        answered = await parked.put(relay)
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        while parked.awaits and not job.ended.is_set():
            with anyio.move_on_after(LOOK):
                await job.changed.wait()
        answered = True
        group.cancel_scope.cancel()
    return answered

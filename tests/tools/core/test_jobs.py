"""Jobs on a real data directory, of one process and of two."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from pathlib import Path

import anyio
import pytest

from storage.agent.jobs import JobRecord, JobState
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library
from storage.models import Identity
from tests.tools.core.job_calls import ANN, begun, call_of, unheard
from tools.core.errors import NotFoundError
from tools.core.jobs import MOST, Jobs, result_in

BEN = Identity("ben")
JobsOf = Callable[[], AbstractAsyncContextManager[Jobs]]


async def _followed(jobs: Jobs, task_id: str, seconds: float = 20) -> JobRecord:
    return await jobs.follow(ANN, task_id, seconds=seconds, report=unheard, relay=None)


@pytest.fixture
def jobs_of(tmp_path: Path) -> JobsOf:
    """Runs the jobs of one more process on the same data directory."""

    @asynccontextmanager
    async def make() -> AsyncIterator[Jobs]:
        with closing(Library(tmp_path / "data", MiniLMEmbedder())) as library:
            jobs = Jobs(library)
            async with jobs.running():
                yield jobs

    return make


async def test_a_call_that_ends_in_time_is_no_job(jobs_of: JobsOf) -> None:
    async with jobs_of() as jobs:
        call = call_of()
        call.ripe.set()
        assert await jobs.patiently(call.job, call.work, 20) is None
        assert call.job.outcome is not None
        with pytest.raises(NotFoundError):
            await jobs.find(ANN, call.job.id)


async def test_nobody_else_sees_a_job_or_cancels_it(jobs_of: JobsOf) -> None:
    async with jobs_of() as jobs:
        call, record = await begun(jobs)
        for whose in (BEN, Identity("ann", agent_id="other")):
            with pytest.raises(NotFoundError) as refused:
                await jobs.find(whose, record.id)
            assert record.id not in refused.value.suggestions
            with pytest.raises(NotFoundError):
                await jobs.cancel(whose, record.id)
        assert not call.job.ended.is_set()
        with pytest.raises(NotFoundError) as mistaken:
            await jobs.find(ANN, "mistaken")
        assert mistaken.value.suggestions == (record.id,)


async def test_another_process_sees_how_far_a_job_is_and_what_came_of_it(jobs_of: JobsOf) -> None:
    async with jobs_of() as jobs, jobs_of() as others:
        call, record = await begun(jobs)
        await call.job.report(3, 4, "weeded")
        with anyio.fail_after(20):
            while (await _followed(others, record.id, 0.3)).progress.done != 3:  # by its record
                await anyio.lowlevel.checkpoint()
        call.ripe.set()
        ended = await _followed(others, record.id)
        assert ended.state is JobState.COMPLETED
        result = result_in(ended)
        assert result is not None
        assert result.text == "Kale is ripe."


async def test_another_process_can_cancel_a_job(jobs_of: JobsOf) -> None:
    async with jobs_of() as jobs, jobs_of() as others:
        call, record = await begun(jobs)
        assert (await others.cancel(ANN, record.id)).state is JobState.CANCELLED
        assert call.job.ended.is_set()


async def test_a_job_is_cancelled_when_its_process_ends(jobs_of: JobsOf) -> None:
    async with jobs_of() as others:
        async with jobs_of() as jobs:
            _, record = await begun(jobs)
        assert (await others.find(ANN, record.id)).state is JobState.CANCELLED


async def test_what_is_too_much_for_one_user_is_waited_for(jobs_of: JobsOf) -> None:
    async with jobs_of() as jobs, anyio.create_task_group() as group:
        for _ in range(MOST):
            await begun(jobs)
        call = call_of()
        group.start_soon(jobs.patiently, call.job, call.work, 0)
        await begun(jobs, BEN)
        assert call.job.parked is None
        call.ripe.set()
        await call.job.ended.wait()


async def test_a_call_whose_client_has_a_question_is_waited_for(jobs_of: JobsOf) -> None:
    async with jobs_of() as jobs, anyio.create_task_group() as group:
        call = call_of(is_with_client=True)
        group.start_soon(jobs.patiently, call.job, call.work, 0)
        await begun(jobs)
        assert call.job.parked is None
        call.ripe.set()


async def test_calls_become_jobs_at_the_same_time(jobs_of: JobsOf) -> None:
    ids: list[str] = []

    async def begin(jobs: Jobs) -> None:
        ids.append((await begun(jobs))[1].id)

    async with jobs_of() as jobs, jobs_of() as others:
        async with anyio.create_task_group() as group:
            for _ in range(4):
                group.start_soon(begin, jobs)
        states = {(await others.find(ANN, each)).state for each in ids}
        assert (len(ids), states) == (4, {JobState.WORKING})

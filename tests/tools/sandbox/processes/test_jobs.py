"""Jobs outlive their calls, not the server; each user has its own, and not too many."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from tests.tools.sandbox.processes.conftest import lives
from tools.core.errors import NotFoundError, RateLimitedError, ToolError
from tools.sandbox.processes import jobs as module
from tools.sandbox.processes.jobs import MOST_RUNNING, Job, Jobs
from tools.sandbox.processes.models import Command


def shell(command: str) -> Command:
    return Command(argv=("bash", "-c", command))


@pytest.fixture
def jobs(crib: Any) -> Jobs:
    found: Jobs = crib.app.machine.jobs
    return found


async def ended(job: Job) -> None:
    with anyio.fail_after(20):
        while job.is_running:
            await anyio.lowlevel.checkpoint()


async def written(job: Job, size: int) -> None:
    with anyio.fail_after(20):
        while job.output.size < size:
            await anyio.lowlevel.checkpoint()


async def test_a_job_goes_on_when_the_call_that_started_it_is_over(jobs: Jobs) -> None:
    async with anyio.create_task_group() as group:
        job = await jobs.start("ann", shell("echo begun; sleep 1000"))
        group.cancel_scope.cancel()
    await written(job, 6)
    assert (job.is_running, job.exit_code) == (True, None)
    await job.kill()
    assert [job.is_running, job.exit_code, job.timed_out] == [False, 137, False]


async def test_a_job_ends_by_itself_with_its_code_and_all_of_its_output(jobs: Jobs) -> None:
    job = await jobs.start("ann", shell("echo out; sleep 1000 & echo err >&2; exit 9"))
    await ended(job)
    assert job.exit_code == 9
    assert sorted(job.output.part(0, 100, is_complete=True).text.split()) == ["err", "out"]


async def test_of_a_flood_the_last_is_kept(jobs: Jobs) -> None:
    job = await jobs.start("ann", shell("head -c 100000000 /dev/zero; echo; echo end"))
    await ended(job)
    assert job.output.size == 100_000_005
    assert job.output.part(-4, 100, is_complete=True).text == "end\n"
    assert job.output.part(0, 10, is_complete=True).lost == 100_000_005 - module.KEPT_BYTES


async def test_a_job_that_runs_for_too_long_is_ended(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SECONDS", 0.1)
    job = await jobs.start("ann", shell("sleep 1000"))
    await ended(job)
    assert (job.timed_out, job.exit_code) == (True, 137)


async def test_each_user_has_so_many_jobs_at_a_time(jobs: Jobs) -> None:
    began: list[Job] = []
    refused: list[RateLimitedError] = []

    async def start() -> None:
        try:
            began.append(await jobs.start("ann", shell("sleep 1000")))
        except RateLimitedError as error:
            refused.append(error)

    async with anyio.create_task_group() as group:
        for _ in range(MOST_RUNNING + 4):
            group.start_soon(start)
    assert (len(began), len(refused)) == (MOST_RUNNING, 4)
    other = await jobs.start("bob", shell("sleep 1000"))
    assert other.is_running
    await began[0].kill()
    await start()
    assert len(began) == MOST_RUNNING + 1


async def test_a_start_that_fails_takes_no_place(jobs: Jobs) -> None:
    for _ in range(MOST_RUNNING + 1):
        with pytest.raises(ToolError) as caught:
            await jobs.start("ann", Command(argv=("/bin/true",), cwd="missing"))
        assert caught.value.error_type != "rate_limited"


async def test_jobs_that_ended_long_ago_are_forgotten(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ENDED", 3)
    other = await jobs.start("bob", shell("true"))
    running = await jobs.start("ann", shell("sleep 1000"))
    over = []
    for _ in range(6):
        over.append(await jobs.start("ann", shell("true")))
        await ended(over[-1])
    await jobs.start("ann", shell("true"))
    for job in over[:3]:
        with pytest.raises(NotFoundError):
            jobs.find("ann", job.id)
    assert [jobs.find("ann", job.id) for job in (*over[3:], running)] == [*over[3:], running]
    assert jobs.find("bob", other.id) is other


async def test_a_job_that_ran_for_long_is_kept_when_it_has_ended(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_ENDED", 3)
    long = await jobs.start("ann", shell("sleep 1000"))
    short = [await jobs.start("ann", shell("true")) for _ in range(5)]
    for job in short:
        await ended(job)
    await long.kill()
    await ended(await jobs.start("ann", shell("true")))
    assert jobs.find("ann", long.id) is long
    assert sum(job.id in jobs._jobs for job in short) == 1


async def test_a_job_is_found_by_its_user_only(jobs: Jobs) -> None:
    job = await jobs.start("ann", shell("sleep 1000"))
    assert jobs.find("ann", job.id) is job
    for user_id, job_id in (("bob", job.id), ("", job.id), ("ann", job.id[:-1]), ("ann", "")):
        with pytest.raises(NotFoundError) as caught:
            jobs.find(user_id, job_id)
        assert caught.value.suggestions == ((job.id,) if user_id == "ann" else ())


async def test_ids_cannot_be_guessed(jobs: Jobs) -> None:
    ids = {(await jobs.start("ann", shell("true"))).id for _ in range(10)}
    assert len(ids) == 10
    assert all(len(bytes.fromhex(each)) == 8 for each in ids)


async def test_nothing_outlives_the_server(open_crib: Callable[..., Any]) -> None:
    async with open_crib() as crib:
        jobs: Jobs = crib.app.machine.jobs
        pids = []
        for command in ("sleep 1000", "setsid sleep 1000 & sleep 1000", "trap '' TERM; sleep 1000"):
            job = await jobs.start("ann", shell(f"echo $$; {command}"))
            await written(job, 2)
            pids.append(job._program.pid)
        assert all(lives(pid) for pid in pids)
    assert not any(lives(pid) for pid in pids)

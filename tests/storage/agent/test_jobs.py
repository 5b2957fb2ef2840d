import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from storage.agent.jobs import KEPT_SECONDS, JobRecord, JobState, JobStore, Progress
from storage.database import Database
from storage.models import Identity

ANN = Identity("ann")


@pytest.fixture
def jobs(tmp_path: Path) -> Iterator[JobStore]:
    with closing(Database(tmp_path / "toolcrib.db")) as database:
        yield JobStore(database)


def _job(name: str, began: float) -> JobRecord:
    progress = Progress(None, None, "", began)
    return JobRecord(name, ANN, "grow", "process", JobState.WORKING, began, progress)


def test_a_job_is_kept_for_a_day_after_its_end(jobs: JobStore) -> None:
    now = time.time()
    job = _job("long", now - 2 * KEPT_SECONDS)
    jobs.add(job)
    ended = replace(job, state=JobState.COMPLETED, ended=now - KEPT_SECONDS + 60, result="{}")
    jobs.end(ended)
    assert jobs.find(ANN, "long") == ended
    jobs.end(replace(ended, ended=now - KEPT_SECONDS - 60))
    assert jobs.find(ANN, "long") is None
    assert jobs.latest(ANN, 5) == []


def test_what_a_process_worked_on_that_died_is_lost_and_nothing_else(jobs: JobStore) -> None:
    now = time.time()
    for name in ("working", "done"):
        jobs.add(_job(name, now))
    jobs.add(replace(_job("other", now), process="another"))
    done = replace(_job("done", now), state=JobState.COMPLETED, ended=now, result="{}")
    jobs.end(done)
    jobs.lose("process")
    states = {name: each.state for name in ("working", "other") if (each := jobs.find(ANN, name))}
    assert states == {"working": JobState.LOST, "other": JobState.WORKING}
    assert jobs.find(ANN, "done") == done

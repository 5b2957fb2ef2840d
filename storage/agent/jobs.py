"""Jobs: calls that continue in the background while their callers poll for the result."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass
from enum import StrEnum

from storage.database import Database, exactly, identity_of, insert_row, update_row
from storage.models import Identity

KEPT_SECONDS = 86_400.0  # seconds for which a finished job can be queried


class JobState(StrEnum):
    """The state of a job."""

    WORKING = "working"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress as a job reports it."""

    done: float | None  # units done; None if not reported
    total: float | None  # units in total; None if unknown
    message: str
    heard: float  # Unix seconds of the last report


@dataclass(frozen=True, slots=True)
class JobRecord:
    """The stored row of a job."""

    id: str  # identifies it; cannot be guessed
    identity: Identity
    tool: str
    process: str
    state: JobState
    began: float  # Unix seconds when it started
    progress: Progress
    ended: float | None = None  # Unix seconds when it ended; None while it runs
    awaits: str = ""  # the question that must be answered first; may be empty
    result: str = ""  # its result as JSON; empty until it ends by itself


_PLAIN = ("id", "tool", "process", "began", "ended", "awaits")


class JobStore:
    """Stores the jobs of all processes that share a data directory."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, job: JobRecord) -> None:
        """Stores a job and deletes those that ended too long ago."""
        row = {name: getattr(job, name) for name in _PLAIN} | asdict(job.identity)
        row |= asdict(job.progress) | {"state": job.state, "result": job.result or None}
        with self._database.write() as connection:
            connection.execute("DELETE FROM jobs WHERE ended < ?", (time.time() - KEPT_SECONDS,))
            insert_row(connection, "jobs", row)

    def find(self, identity: Identity, job_id: str) -> JobRecord | None:
        """Returns a job of exactly this identity; None if it has none with this id."""
        return next(iter(self._select(identity, "j.id = ?", job_id)), None)

    def latest(self, identity: Identity, count: int) -> list[JobRecord]:
        """Returns the jobs of exactly this identity that started last."""
        return self._select(identity, "1 ORDER BY j.began DESC LIMIT ?", count)

    def beat(self, jobs: Sequence[JobRecord]) -> None:
        """Stores the progress of running jobs."""
        with self._database.write(synced=False) as connection:
            connection.executemany(
                "UPDATE jobs SET done = ?, total = ?, message = ?, heard = ?, awaits = ?"
                " WHERE id = ? AND state = 'working'",
                ((*astuple(each.progress), each.awaits, each.id) for each in jobs),
            )

    def unwanted(self, process: str) -> list[str]:
        """Returns the jobs of a process whose owners asked to cancel them."""
        found = "SELECT id FROM jobs WHERE state = 'working' AND process = ? AND unwanted"
        return [str(row["id"]) for row in self._database.rows(found, (process,))]

    def end(self, job: JobRecord) -> None:
        """Stores the outcome of a job."""
        row = asdict(job.progress) | {"state": job.state, "ended": job.ended, "awaits": ""}
        with self._database.write() as connection:
            update_row(connection, "jobs", row | {"result": job.result or None}, {"id": job.id})

    def remove(self, job_id: str) -> None:
        """Deletes a job that ended before its caller learned of it."""
        self._database.change("DELETE FROM jobs WHERE id = ?", (job_id,))

    def want_cancelled(self, identity: Identity, job_id: str) -> None:
        """Records that its owner wants a job cancelled, for the process that runs it."""
        own = exactly(identity, "jobs")
        self._database.change(
            f"UPDATE jobs SET unwanted = 1 WHERE id = ? AND {own.sql}", (job_id, *own.values)
        )

    def lose(self, process: str) -> None:
        """Marks the running jobs of a dead process as lost."""
        self._database.change(
            "UPDATE jobs SET state = 'lost', ended = ?, awaits = ''"
            " WHERE state = 'working' AND process = ?",
            (time.time(), process),
        )

    def _select(self, identity: Identity, condition: str, value: object) -> list[JobRecord]:
        own, now = exactly(identity, "j"), time.time()
        rows = self._database.rows(
            f"SELECT * FROM jobs j WHERE {own.sql} AND coalesce(j.ended, ?) > ? AND {condition}",
            (*own.values, now, now - KEPT_SECONDS, value),
        )
        return [
            JobRecord(
                **{name: row[name] for name in _PLAIN},
                identity=identity_of(row),
                state=JobState(row["state"]),
                progress=Progress(*(row[name] for name in Progress.__slots__)),
                result=row["result"] or "",
            )
            for row in rows
        ]

"""Jobs: calls that continue in the background while their callers poll for the result."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from storage.database import Database, exactly
from storage.models import Identity

KEPT_SECONDS = 86_400.0
"""Seconds for which a finished job can be queried."""


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
    # the question that a user or a model must answer first; empty if there is none
    awaits: str = ""
    result: str = ""  # its result as JSON; empty until it ends by itself


_COLUMNS = (
    *("id", "user_id", "device_id", "agent_id", "tool", "process", "state"),
    *("began", "ended", "done", "total", "message", "heard", "awaits", "result"),
)


class JobStore:
    """Stores the jobs of all processes that share a data directory."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, job: JobRecord) -> None:
        """Stores a job and deletes those that ended too long ago."""
        places = ", ".join("?" * len(_COLUMNS))
        with self._database.write() as connection:
            connection.execute("DELETE FROM jobs WHERE ended < ?", (time.time() - KEPT_SECONDS,))
            connection.execute(
                f"INSERT INTO jobs ({', '.join(_COLUMNS)}) VALUES ({places})", _values(job)
            )

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
                ((*_progress_values(each.progress), each.awaits, each.id) for each in jobs),
            )

    def unwanted(self, process: str) -> list[str]:
        """Returns the jobs of a process whose owners asked to cancel them."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT id FROM jobs WHERE state = 'working' AND process = ? AND unwanted",
                (process,),
            )
            return [str(row["id"]) for row in rows]

    def end(self, job: JobRecord) -> None:
        """Stores the outcome of a job."""
        with self._database.write() as connection:
            connection.execute(
                "UPDATE jobs SET state = ?, ended = ?, done = ?, total = ?, message = ?, heard = ?,"
                " awaits = '', result = ? WHERE id = ?",
                (job.state, job.ended, *_progress_values(job.progress), job.result or None, job.id),
            )

    def remove(self, job_id: str) -> None:
        """Deletes a job that ended before its caller learned of it."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM jobs WHERE id = ?", (job_id,))

    def want_cancelled(self, identity: Identity, job_id: str) -> None:
        """Records that its owner wants a job cancelled, for the process that runs it."""
        owner = exactly(identity, "jobs")
        with self._database.write() as connection:
            connection.execute(
                f"UPDATE jobs SET unwanted = 1 WHERE id = ? AND {owner.sql}",
                (job_id, *owner.values),
            )

    def lose(self, process: str) -> None:
        """Marks the running jobs of a dead process as lost."""
        with self._database.write() as connection:
            connection.execute(
                "UPDATE jobs SET state = 'lost', ended = ?, awaits = ''"
                " WHERE state = 'working' AND process = ?",
                (time.time(), process),
            )

    def _select(self, identity: Identity, condition: str, value: object) -> list[JobRecord]:
        owner = exactly(identity, "j")
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT {', '.join(_COLUMNS)} FROM jobs j WHERE {owner.sql}"
                f" AND coalesce(j.ended, ?) > ? AND {condition}",
                (*owner.values, time.time(), time.time() - KEPT_SECONDS, value),
            )
            return [_record(row) for row in rows]


def _values(job: JobRecord) -> tuple[object, ...]:
    whose = (job.identity.user_id, job.identity.device_id, job.identity.agent_id)
    head = (job.id, *whose, job.tool, job.process, job.state)
    return (
        *head,
        job.began,
        job.ended,
        *_progress_values(job.progress),
        job.awaits,
        job.result or None,
    )


def _progress_values(progress: Progress) -> tuple[object, ...]:
    return progress.done, progress.total, progress.message, progress.heard


def _record(row: sqlite3.Row) -> JobRecord:
    return JobRecord(
        id=row["id"],
        identity=Identity(row["user_id"], row["device_id"], row["agent_id"]),
        tool=row["tool"],
        process=row["process"],
        state=JobState(row["state"]),
        began=row["began"],
        progress=Progress(row["done"], row["total"], row["message"], row["heard"]),
        ended=row["ended"],
        awaits=row["awaits"],
        result=row["result"] or "",
    )

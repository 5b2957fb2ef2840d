"""Jobs: calls that go on after their callers were told to look again."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from storage.database import Database, exactly
from storage.models import Identity

KEPT_SECONDS = 86_400.0
"""How long a job can be asked about after its end."""


class JobState(StrEnum):
    """How far a job is."""

    WORKING = "working"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job says that it is.

    Attributes:
        done: What is done; None if it did not say.
        total: Of how much; None if nobody knows.
        message: In words.
        heard: Unix seconds when it last said so.
    """

    done: float | None
    total: float | None
    message: str
    heard: float


@dataclass(frozen=True, slots=True)
class JobRecord:
    """What is kept of a job.

    Attributes:
        id: Names it; nobody guesses it.
        identity: Whose it is.
        tool: The tool that runs.
        process: Which process works on it.
        state: How far it is.
        began: Unix seconds when it was called.
        progress: How far it says that it is.
        ended: Unix seconds when it ended; None while it works.
        awaits: What a person or a model has to answer first; empty if nothing.
        result: What came of it, as JSON; empty until it has ended by itself.
    """

    id: str
    identity: Identity
    tool: str
    process: str
    state: JobState
    began: float
    progress: Progress
    ended: float | None = None
    awaits: str = ""
    result: str = ""


_COLUMNS = (
    *("id", "user_id", "device_id", "agent_id", "tool", "process", "state"),
    *("began", "ended", "done", "total", "message", "heard", "awaits", "result"),
)


class JobStore:
    """Keeps the jobs of every process of a data directory.

    Args:
        database: The record.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, job: JobRecord) -> None:
        """Keeps a job from now on; those that ended too long ago go."""
        places = ", ".join("?" * len(_COLUMNS))
        with self._database.write() as connection:
            connection.execute("DELETE FROM jobs WHERE ended < ?", (time.time() - KEPT_SECONDS,))
            connection.execute(
                f"INSERT INTO jobs ({', '.join(_COLUMNS)}) VALUES ({places})", _values(job)
            )

    def find(self, identity: Identity, job_id: str) -> JobRecord | None:
        """A job of this very identity; None if it has none of that name any more."""
        return next(iter(self._select(identity, "j.id = ?", job_id)), None)

    def latest(self, identity: Identity, count: int) -> list[JobRecord]:
        """The jobs of this very identity that began last."""
        return self._select(identity, "1 ORDER BY j.began DESC LIMIT ?", count)

    def beat(self, jobs: Sequence[JobRecord]) -> None:
        """Writes how far jobs are that still work."""
        with self._database.write(synced=False) as connection:
            connection.executemany(
                "UPDATE jobs SET done = ?, total = ?, message = ?, heard = ?, awaits = ?"
                " WHERE id = ? AND state = 'working'",
                ((*_said(each.progress), each.awaits, each.id) for each in jobs),
            )

    def unwanted(self, process: str) -> list[str]:
        """The jobs of a process that somebody wants cancelled."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT id FROM jobs WHERE state = 'working' AND process = ? AND unwanted",
                (process,),
            )
            return [str(row["id"]) for row in rows]

    def end(self, job: JobRecord) -> None:
        """Writes what came of a job."""
        with self._database.write() as connection:
            connection.execute(
                "UPDATE jobs SET state = ?, ended = ?, done = ?, total = ?, message = ?, heard = ?,"
                " awaits = '', result = ? WHERE id = ?",
                (job.state, job.ended, *_said(job.progress), job.result or None, job.id),
            )

    def remove(self, job_id: str) -> None:
        """Forgets a job that ended before its caller was told of it."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM jobs WHERE id = ?", (job_id,))

    def want_cancelled(self, identity: Identity, job_id: str) -> None:
        """Tells whichever process works on a job that its owner wants it cancelled."""
        owner = exactly(identity, "jobs")
        with self._database.write() as connection:
            connection.execute(
                f"UPDATE jobs SET unwanted = 1 WHERE id = ? AND {owner.sql}",
                (job_id, *owner.values),
            )

    def lose(self, process: str) -> None:
        """Takes note that a process died, with all that it worked on."""
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
    return (*head, job.began, job.ended, *_said(job.progress), job.awaits, job.result or None)


def _said(progress: Progress) -> tuple[object, ...]:
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

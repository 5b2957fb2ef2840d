"""The embedding queue: which chunks wait for vectors, and in which order.

It is a table of the record, so that all processes on a data directory take from the same queue in
the same order, and nothing is lost when one dies.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum

RUN_SECONDS = 0.2  # the target duration of a run; new chunks wait for the current run
# Texts of the first run and of any run; the texts of a run are embedded and written together.
FIRST_TEXTS = 8
MOST_TEXTS = 32
ROUGH_TEXTS = 200  # rough vectors made between two transactions, some tenths of a second of work
BEFORE = 300  # characters of the previous turn that are embedded with a turn; usually the question
FAIR = 4  # one run in this many takes the oldest chunks, however many are added meanwhile


# Metadata key of contexts that are found by their words only, such as logs; a column reads it.
WORDS_ONLY = "words_only"


class Priority(IntEnum):
    """When a chunk is embedded; the numbers are stored in the record."""

    FIRST = 0  # added on its own: a search for it may follow at once
    ROUGH = 1  # one of many, as in an import; gets a rough vector before its own
    LATER = 2  # one of many


class Pace:
    """Decides how many texts the next run takes, and whether it takes the oldest."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.texts = FIRST_TEXTS
        self._clock = clock
        self._runs = 0

    @property
    def oldest_first(self) -> bool:
        """Whether the next run takes the oldest chunks."""
        return self._runs % FAIR == FAIR - 1

    @contextmanager
    def timed(self, texts: int) -> Iterator[None]:
        """Times a run and adapts the size of the next one."""
        began = self._clock()
        yield
        seconds = self._clock() - began
        self._runs += 1
        if seconds > RUN_SECONDS:
            self.texts = max(texts // 2, 1)
        elif seconds < RUN_SECONDS / 2 and texts == self.texts:
            self.texts = min(2 * texts, MOST_TEXTS)


def await_vectors(
    connection: sqlite3.Connection, user_id: str, chunk_seqs: Iterable[int], *, one_of_many: bool
) -> None:
    """Queues chunks for embedding by the current model, and by the next model if there is one.

    Only chunks of the current model get rough vectors. Chunks found by their words only are left
    out.
    """
    current, following = (
        (Priority.ROUGH, Priority.LATER) if one_of_many else (Priority.FIRST, Priority.FIRST)
    )
    connection.executemany(
        "INSERT INTO embed_queue (chunk_seq, model_seq, user_id, priority)"
        " SELECT c.seq, m.seq, ?, iif(m.state = 'current', ?, ?) FROM models m, chunks c"
        " JOIN contexts x ON x.seq = c.context_seq"
        " WHERE m.state <> 'old' AND c.seq = ? AND NOT x.words_only",
        ((user_id, current, following, seq) for seq in chunk_seqs),
    )


def take(
    connection: sqlite3.Connection, model_seq: int, pace: Pace, *, one_of_many: bool = True
) -> list[sqlite3.Row]:
    """Reads the chunks of a model's next run: seq, and the parts of `passage`; they stay queued.

    Chunks added on their own come first, the newest of them before the others.
    """
    count = pace.texts
    seqs = _waiting(connection, model_seq, Priority.FIRST, "DESC", count)
    if one_of_many and (pace.oldest_first or not seqs):
        oldest = _waiting(connection, model_seq, Priority.FIRST, "ASC", count)
        later = _waiting(connection, model_seq, Priority.LATER, "ASC", count)
        seqs = sorted([*oldest, *later])[:count]
    return _texts(connection, seqs)


def take_rough(connection: sqlite3.Connection) -> list[sqlite3.Row]:
    """Reads the chunks of the next first pass, as `take` does."""
    seqs = [
        seq
        for (model_seq,) in connection.execute("SELECT seq FROM models WHERE state = 'current'")
        for seq in _waiting(connection, model_seq, Priority.ROUGH, "ASC", ROUGH_TEXTS)
    ]
    return _texts(connection, seqs)


def _texts(connection: sqlite3.Connection, seqs: Sequence[int]) -> list[sqlite3.Row]:
    return connection.execute(
        "SELECT c.seq, x.title, c.heading, c.content, coalesce(substr(b.content, ?), '') AS before"
        " FROM json_each(?) j CROSS JOIN chunks c ON c.seq = j.value"
        " JOIN contexts x ON x.seq = c.context_seq LEFT JOIN chunks b"
        " ON x.of_turns AND b.seq = c.seq - 1 AND b.context_seq = c.context_seq",
        (-BEFORE, json.dumps(seqs)),
    ).fetchall()


def _waiting(
    connection: sqlite3.Connection, model_seq: int, priority: Priority, order: str, count: int
) -> list[int]:
    rows = connection.execute(
        "SELECT chunk_seq FROM embed_queue WHERE model_seq = ? AND priority = ?"
        f" ORDER BY chunk_seq {order} LIMIT ?",
        (model_seq, priority, count),
    )
    return [int(row[0]) for row in rows]

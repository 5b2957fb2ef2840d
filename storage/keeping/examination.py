"""Checks that the record is intact and the lexical index matches it."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from storage.index import lexical

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


def damage(connection: sqlite3.Connection) -> str:
    """Describes damage to the record's pages or foreign keys; empty if there is none."""
    verdict = str(connection.execute("PRAGMA quick_check(1)").fetchone()[0])
    if verdict != "ok":
        return verdict
    loose = connection.execute("PRAGMA foreign_key_check").fetchall()
    return f"{len(loose)} rows of {loose[0][0]} refer to missing rows" if loose else ""


def unindexed(connection: sqlite3.Connection) -> int:
    """Counts chunks that the lexical index lacks, has twice, or has though they were deleted."""
    users = connection.execute(
        "SELECT user_id FROM chunks UNION SELECT user_id FROM lexical_segments WHERE live = 1"
        " UNION SELECT user_id FROM lexical_fresh"
    ).fetchall()
    return sum(_unindexed(connection, row[0]) for row in users)


def _unindexed(connection: sqlite3.Connection, user_id: str) -> int:
    import numpy as np

    expected = _seqs(
        connection.execute(
            "SELECT seq FROM chunks c WHERE user_id = ? AND NOT EXISTS"
            " (SELECT 1 FROM lexical_todo t WHERE c.seq BETWEEN t.first_seq AND t.last_seq)",
            (user_id,),
        )
    )
    fresh = connection.execute("SELECT chunk_seq FROM lexical_fresh WHERE user_id = ?", (user_id,))
    held = [_seqs(fresh)]
    empty = {
        row[0]
        for row in connection.execute(
            "SELECT seq FROM lexical_segments s WHERE live = 1 AND user_id = ? AND NOT EXISTS"
            " (SELECT 1 FROM lexical_blocks b WHERE b.segment_seq = s.seq)",
            (user_id,),
        )
    }
    dead = lexical.read_dead(connection, user_id)
    for segment, chunks in lexical.read_segments(connection, user_id).items():
        if segment not in empty:
            held.append(np.setdiff1d(chunks.seqs, dead))
    found, times = np.unique(np.concatenate(held), return_counts=True)
    return len(np.setxor1d(found, expected)) + int((times > 1).sum())


def _seqs(rows: sqlite3.Cursor) -> Ints:
    import numpy as np

    return np.array([row[0] for row in rows], dtype=np.int64)

"""Maintains the lexical index in the background: indexes, folds and merges.

Each transaction is short, so that no other writer waits long. Only one process works at a time: the
holder of the indexer's lock. A process that dies midway leaves a segment that is not live, which
the next one removes. A release that changes text analysis (`storage.tokenize`) needs a migration
that does what `reset` does.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, TypeAlias

from storage.database import Database
from storage.index import lexical
from storage.index.lexical import Chunks, Postings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]

# Fresh chunks that become a segment; every search reads all remaining fresh chunks.
FOLD_CHUNKS = 1000
TIER_SEGMENTS = 4  # segments of one tier that are merged into one of the next
PURGE_SECONDS = 3600  # seconds after which the postings of any deleted chunk are removed
PURGE_SHARE = 16  # if one chunk in this many was deleted, their postings are removed at once
# The work of one transaction: some tens of milliseconds.
INDEX_CHUNKS = 200
MERGE_CHUNKS = 4000
WASTE_BLOCKS = 1000
BLOCK_POSTINGS = 512  # postings after which a block takes no further term: about a database page
_Job: TypeAlias = Callable[[Database], None]


def has_work(connection: sqlite3.Connection) -> bool:
    """Whether there is anything to do."""
    return _next_job(connection) is not None


def work(database: Database) -> bool:
    """Does one piece of work; returns False if there is none."""
    with database.read() as connection:
        job = _next_job(connection)
    if job is not None:
        job(database)
    return job is not None


def reset(connection: sqlite3.Connection) -> None:
    """Discards the index and queues every chunk for indexing."""
    connection.execute("UPDATE lexical_segments SET live = 0")
    for table in ("lexical_fresh", "lexical_dead", "lexical_todo"):
        connection.execute(f"DELETE FROM {table}")
    connection.execute(
        "INSERT INTO lexical_todo SELECT first_seq, last_seq FROM"
        " (SELECT min(seq) AS first_seq, max(seq) AS last_seq FROM chunks)"
        " WHERE first_seq IS NOT NULL"
    )


def _next_job(connection: sqlite3.Connection) -> _Job | None:
    waste = connection.execute("SELECT min(seq) FROM lexical_segments WHERE live = 0").fetchone()[0]
    if waste is not None:
        return partial(_sweep, waste)
    ripe = connection.execute(
        "SELECT user_id FROM lexical_fresh GROUP BY user_id HAVING count(*) >= ? LIMIT 1",
        (FOLD_CHUNKS,),
    ).fetchone()
    if ripe is not None:
        return partial(_fold, ripe[0])
    alike = connection.execute(
        "SELECT user_id, json_group_array(seq) FROM lexical_segments WHERE live = 1"
        " GROUP BY user_id, tier HAVING count(*) >= ? LIMIT 1",
        (TIER_SEGMENTS,),
    ).fetchone()
    if alike is not None:
        return partial(_merge, alike[0], json.loads(alike[1]))
    if (purge := _purge_job(connection)) is not None:
        return purge
    has_todo = connection.execute("SELECT EXISTS (SELECT 1 FROM lexical_todo)").fetchone()[0]
    return _index if has_todo else None


def _sweep(segment_seq: int, database: Database) -> None:
    """Removes a part of a segment that is not live."""
    with database.write() as connection:
        removed = connection.execute(
            "DELETE FROM lexical_blocks WHERE seq IN"
            " (SELECT seq FROM lexical_blocks WHERE segment_seq = ? LIMIT ?)",
            (segment_seq, WASTE_BLOCKS),
        ).rowcount
        if removed < WASTE_BLOCKS:
            connection.execute("DELETE FROM lexical_segments WHERE seq = ?", (segment_seq,))


def _fold(user_id: str, database: Database) -> None:
    with database.write() as connection:
        chunks, fresh = lexical.read_fresh(connection, user_id, FOLD_CHUNKS)
        segment_seq = create_segment(connection, user_id, 0, chunks)
        write_postings(connection, segment_seq, fresh)
        connection.execute("UPDATE lexical_segments SET live = 1 WHERE seq = ?", (segment_seq,))
        connection.executemany(
            "DELETE FROM lexical_fresh WHERE chunk_seq = ?",
            ((seq,) for seq in chunks.seqs.tolist()),
        )


def _merge(user_id: str, segment_seqs: Sequence[int], database: Database) -> None:
    """Merges segments into one, without the deleted chunks."""
    import numpy as np

    with database.read() as connection:
        every = lexical.read_segments(connection, user_id)
        dead = lexical.read_dead(connection, user_id)
    sources = [every[seq] for seq in segment_seqs]
    seqs = np.concatenate([chunks.seqs for chunks in sources])
    lengths = np.concatenate([chunks.lengths for chunks in sources])
    others = [chunks.seqs for seq, chunks in every.items() if seq not in segment_seqs]
    elsewhere = np.concatenate([seqs[:0], *others])  # dead chunks there are purged later
    alive = np.flatnonzero(~np.isin(seqs, dead))
    order = alive[np.argsort(seqs[alive])]
    merged = Chunks(seqs[order], lengths[order])
    place_of = np.full(len(seqs), -1)  # the position of each old chunk in the new segment
    place_of[order] = np.arange(len(order))
    ends = np.cumsum([len(chunks.seqs) for chunks in sources])
    new_places = np.split(place_of, ends[:-1])
    with database.write() as connection:
        target = create_segment(connection, user_id, _tier(len(order)), merged)
    count = 1 + len(seqs) // MERGE_CHUNKS  # of equal ranges of hashes, a transaction for each
    bounds = [(number << 64) // count - (1 << 63) for number in range(count + 1)]
    for lowest, above in pairwise(bounds):
        parts = []
        with database.read() as connection:
            for seq, new in zip(segment_seqs, new_places, strict=True):
                held = read_segment(connection, seq, lowest, above - 1)
                places = new[held.places]
                kept = places >= 0
                parts.append((held.terms[kept], places[kept], held.counts[kept]))
        moved = Postings(*(np.concatenate(column) for column in zip(*parts, strict=True)))
        with database.write() as connection:
            write_postings(connection, target, moved)
    with database.write() as connection:
        _replace(connection, segment_seqs, target, np.setdiff1d(dead, elsewhere).tolist())


def _replace(
    connection: sqlite3.Connection, sources: Sequence[int], target: int, purged: Sequence[int]
) -> None:
    """Replaces source segments by their merged one, unless the sources were discarded meanwhile."""
    marks = ", ".join("?" * len(sources))
    live = connection.execute(
        f"SELECT count(*) FROM lexical_segments WHERE live = 1 AND seq IN ({marks})", sources
    ).fetchone()[0]
    if live < len(sources):
        return  # the target stays waste
    connection.execute(f"UPDATE lexical_segments SET live = 0 WHERE seq IN ({marks})", sources)
    connection.execute("UPDATE lexical_segments SET live = 1 WHERE seq = ? AND size > 0", (target,))
    connection.executemany(
        "DELETE FROM lexical_dead WHERE chunk_seq = ?", ((seq,) for seq in purged)
    )


def _tier(size: int) -> int:
    """0 for the segments that folding makes, 1 from `TIER_SEGMENTS` times that size, and so on."""
    tier = 0
    while size >= FOLD_CHUNKS * TIER_SEGMENTS ** (tier + 1):
        tier += 1
    return tier


def _purge_job(connection: sqlite3.Connection) -> _Job | None:
    """Returns a rewrite of the segment with the most deleted chunks, if one is due."""
    due = connection.execute(
        "SELECT d.user_id FROM lexical_dead d JOIN (SELECT user_id, sum(size) AS size"
        " FROM lexical_segments WHERE live = 1 GROUP BY user_id) s ON s.user_id = d.user_id"
        " GROUP BY d.user_id HAVING min(d.time) <= ? OR count(*) * ? >= s.size LIMIT 1",
        (int(time.time()) - PURGE_SECONDS, PURGE_SHARE),
    ).fetchone()
    if due is None:
        return None
    import numpy as np

    dead = lexical.read_dead(connection, due[0])
    segments = lexical.read_segments(connection, due[0])
    most = max(segments, key=lambda seq: int(np.isin(segments[seq].seqs, dead).sum()))
    return partial(_merge, due[0], [most])


def _index(database: Database) -> None:
    from storage.contexts.ingestion import chunk_terms

    with database.read() as connection:
        todo = connection.execute("SELECT rowid, * FROM lexical_todo LIMIT 1").fetchone()
        if todo is None:
            return
        rows = connection.execute(
            "SELECT c.seq, c.user_id, c.position, c.heading, c.content, x.title, x.summary,"
            " x.keywords FROM chunks c JOIN contexts x ON x.seq = c.context_seq"
            " WHERE c.seq BETWEEN ? AND ? ORDER BY c.seq LIMIT ?",
            (todo["first_seq"], todo["last_seq"], INDEX_CHUNKS),
        ).fetchall()
    terms = [
        chunk_terms(
            row["title"],
            row["heading"],
            row["content"],
            () if row["position"] else (row["summary"], *json.loads(row["keywords"])),
        )
        for row in rows
    ]
    with database.write() as connection:
        if _advance(connection, todo, rows[-1]["seq"] if len(rows) == INDEX_CHUNKS else None):
            there = {
                row[0]
                for row in connection.execute(
                    "SELECT seq FROM chunks WHERE seq BETWEEN ? AND ?",
                    (todo["first_seq"], rows[-1]["seq"] if rows else 0),
                )
            }
            for row, (title, body) in zip(rows, terms, strict=True):
                if row["seq"] in there:
                    lexical.add_terms(connection, row["user_id"], [(row["seq"], title, body)])


def _advance(connection: sqlite3.Connection, todo: sqlite3.Row, last_seq: int | None) -> bool:
    """Marks a range as done up to a chunk, or entirely; returns whether it was pending."""
    where = "WHERE rowid = ? AND first_seq = ? AND last_seq = ?"
    sql, values = f"DELETE FROM lexical_todo {where}", tuple(todo)
    if last_seq is not None:
        sql, values = f"UPDATE lexical_todo SET first_seq = ? {where}", (last_seq + 1, *todo)
    return connection.execute(sql, values).rowcount == 1


def create_segment(connection: sqlite3.Connection, user_id: str, tier: int, chunks: Chunks) -> int:
    """Adds a segment without postings, which is not live yet, and returns its seq."""
    cursor = connection.execute(
        "INSERT INTO lexical_segments (user_id, live, tier, size, chunks, lengths)"
        " VALUES (?, 0, ?, ?, ?, ?)",
        (
            user_id,
            tier,
            len(chunks.seqs),
            chunks.seqs.astype("<i8").tobytes(),
            chunks.lengths.astype("<u4").tobytes(),
        ),
    )
    return int(cursor.lastrowid or 0)


def write_postings(connection: sqlite3.Connection, segment_seq: int, postings: Postings) -> None:
    """Adds all postings that a segment has for some terms."""
    import numpy as np

    if not len(postings.terms):
        return
    order = np.argsort(postings.terms, kind="stable")
    every = postings.terms[order]
    places = postings.places[order].astype("<u4")
    counts = postings.counts[order].astype("<u2")
    terms, starts = np.unique(every, return_index=True)
    ends = np.append(starts[1:], len(every))
    # A block begins with the first term that starts in each stretch of BLOCK_POSTINGS.
    first = np.unique(starts // BLOCK_POSTINGS, return_index=True)[1]
    connection.executemany(
        "INSERT INTO lexical_blocks (segment_seq, first_term, terms, sizes, places, counts)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (
            (
                segment_seq,
                int(terms[begin]),
                terms[begin:end].astype("<i8").tobytes(),
                (ends[begin:end] - starts[begin:end]).astype("<u4").tobytes(),
                places[starts[begin] : ends[end - 1]].tobytes(),
                counts[starts[begin] : ends[end - 1]].tobytes(),
            )
            for begin, end in zip(first, [*first[1:], len(terms)], strict=True)
        ),
    )


def read_segment(
    connection: sqlite3.Connection, segment_seq: int, lowest: int, highest: int
) -> Postings:
    """Reads the postings of a segment's terms between two hashes, both included."""
    import numpy as np

    rows = connection.execute(
        "SELECT terms, sizes, places, counts FROM lexical_blocks WHERE segment_seq = :segment"
        " AND first_term >= coalesce((SELECT max(first_term) FROM lexical_blocks"
        " WHERE segment_seq = :segment AND first_term <= :lowest), :lowest)"
        " AND first_term <= :highest",
        {"segment": segment_seq, "lowest": lowest, "highest": highest},
    ).fetchall()
    terms, sizes, places, counts = (
        (b"".join(blobs) for blobs in zip(*rows, strict=True)) if rows else (b"",) * 4
    )
    every = np.repeat(np.frombuffer(terms, "<i8"), np.frombuffer(sizes, "<u4"))
    wanted = (every >= lowest) & (every <= highest)
    return Postings(
        every[wanted],
        np.frombuffer(places, "<u4")[wanted].astype(np.int64),
        np.frombuffer(counts, "<u2")[wanted].astype(np.int64),
    )

"""Stores the lexical index: fresh chunks, and segments that never change.

Adding a chunk writes one row, regardless of the index's size. From time to time
`storage.index.maintenance` folds a user's fresh rows into a segment and merges segments into larger
ones, so that a search reads few: a log-structured merge tree (O'Neil et al., 1996,
https://doi.org/10.1007/s002360050048). Everything is partitioned by user: no search reads another
user's rows.

Within a segment a chunk is identified by its position, and a term by its hash. The postings of a
term are the positions of its chunks, each with a count; neighbouring terms share a row, a block.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]

BLOCK_POSTINGS = 512  # postings after which a block takes no further term: about a database page
MAX_COUNT = 0xFFFF  # the highest count that is stored of a term in a chunk
_HASH_BYTES = 8


@dataclass(frozen=True, slots=True)
class Chunks:
    """Chunks of the index; their positions are their indexes here."""

    seqs: Ints  # their seqs, ascending within a segment
    lengths: Ints  # their numbers of terms


@dataclass(frozen=True, slots=True)
class Postings:
    """Postings, one entry each."""

    terms: Ints
    places: Ints  # positions of the chunks that contain them, once per term
    counts: Ints  # how often the term appears in the chunk


def hash_term(term: str) -> int:
    """Returns the index's key of a term: 64 bits, signed like SQLite's integers."""
    return int.from_bytes(_digest(term), "little", signed=True)


def add_fresh(
    connection: sqlite3.Connection, user_id: str, chunk_seq: int, counts: Mapping[str, int]
) -> None:
    """Adds a chunk that is in no segment, with the count of each term."""
    capped = [min(count, MAX_COUNT).to_bytes(2, "little") for count in counts.values()]
    connection.execute(
        "INSERT INTO lexical_fresh (chunk_seq, user_id, length, terms, counts)"
        " VALUES (?, ?, ?, ?, ?)",
        (
            chunk_seq,
            user_id,
            sum(counts.values()),
            b"".join(map(_digest, counts)),
            b"".join(capped),
        ),
    )


def read_fresh(
    connection: sqlite3.Connection, user_id: str, limit: int = -1
) -> tuple[Chunks, Postings]:
    """Reads a user's chunks that are in no segment, oldest first, at most `limit` (-1: all)."""
    import numpy as np

    rows = connection.execute(
        "SELECT chunk_seq, length, terms, counts FROM lexical_fresh WHERE user_id = ?"
        " ORDER BY chunk_seq LIMIT ?",
        (user_id, limit),
    ).fetchall()
    seqs, lengths, terms, counts = zip(*rows, strict=True) if rows else ((), (), (), ())
    each = np.array([len(blob) // _HASH_BYTES for blob in terms], dtype=np.int64)
    return Chunks(np.array(seqs, dtype=np.int64), np.array(lengths, dtype=np.int64)), Postings(
        np.frombuffer(b"".join(terms), "<i8"),
        np.repeat(np.arange(len(rows)), each),
        np.frombuffer(b"".join(counts), "<u2").astype(np.int64),
    )


def read_dead(connection: sqlite3.Connection, user_id: str) -> Ints:
    """Reads a user's deleted chunks that a segment still contains."""
    import numpy as np

    rows = connection.execute("SELECT chunk_seq FROM lexical_dead WHERE user_id = ?", (user_id,))
    return np.array([row[0] for row in rows], dtype=np.int64)


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


def read_segments(connection: sqlite3.Connection, user_id: str) -> dict[int, Chunks]:
    """Reads the chunks of each of a user's live segments, by segment seq."""
    import numpy as np

    rows = connection.execute(
        "SELECT seq, chunks, lengths FROM lexical_segments WHERE live = 1 AND user_id = ?",
        (user_id,),
    )
    return {
        seq: Chunks(np.frombuffer(seqs, "<i8"), np.frombuffer(lengths, "<u4").astype(np.int64))
        for seq, seqs, lengths in rows
    }


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


def find_postings(
    connection: sqlite3.Connection, segments: Sequence[int], terms: Sequence[int]
) -> dict[int, list[tuple[int, Ints, Ints]]]:
    """Returns (segment, places, counts) for each segment that contains a term."""
    import numpy as np

    found: dict[int, list[tuple[int, Ints, Ints]]] = {term: [] for term in terms}
    rows = connection.execute(
        "SELECT s.value, t.value, b.terms, b.sizes, b.places, b.counts"
        " FROM json_each(?) s CROSS JOIN json_each(?) t CROSS JOIN lexical_blocks b"
        " WHERE b.seq = (SELECT seq FROM lexical_blocks WHERE segment_seq = s.value"
        " AND first_term <= t.value ORDER BY first_term DESC LIMIT 1)",
        (json.dumps(segments), json.dumps(terms)),
    )
    for segment, term, block_terms, block_sizes, places, counts in rows:
        known = np.frombuffer(block_terms, "<i8")
        at = int(np.searchsorted(known, term))
        if at == len(known) or known[at] != term:
            continue
        sizes = np.frombuffer(block_sizes, "<u4")
        start = int(sizes[:at].sum())
        own = slice(start, start + int(sizes[at]))
        found[term].append(
            (
                segment,
                np.frombuffer(places, "<u4")[own].astype(np.int64),
                np.frombuffer(counts, "<u2")[own].astype(np.int64),
            )
        )
    return found


def _digest(term: str) -> bytes:
    return blake2b(term.encode("utf-8", "surrogatepass"), digest_size=_HASH_BYTES).digest()

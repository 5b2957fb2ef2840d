"""The lexical index as it lies in the record: fresh chunks, and segments that never change.

Adding a chunk writes one row, whatever the index holds. Now and then `storage.index.maintenance`
folds a user's fresh rows into a segment and merges segments into larger ones, so that a search
reads few: a log-structured merge tree (O'Neil et al., 1996, https://doi.org/10.1007/s002360050048).
All of it is partitioned by user: no search reads what belongs to another.

Within a segment a chunk is known by its place, and a term by its hash. The postings of a term are
the places that hold it, each with how often; those of some neighbouring terms share a row, a block.
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

BLOCK_POSTINGS = 512
"""Postings after which a block takes no further term: about a page of the record."""

MAX_COUNT = 0xFFFF
"""A term that stands in a chunk more often counts as if it stood so often."""

_HASH_BYTES = 8


@dataclass(frozen=True, slots=True)
class Chunks:
    """Chunks of the index; the place of each is its index here.

    Attributes:
        seqs: Which they are, ascending within a segment.
        lengths: How many terms each has.
    """

    seqs: Ints
    lengths: Ints


@dataclass(frozen=True, slots=True)
class Postings:
    """Postings, an entry each.

    Attributes:
        terms: Hashes.
        places: Of the chunks that hold them; each once a term.
        counts: How often the term stands in the chunk.
    """

    terms: Ints
    places: Ints
    counts: Ints


def hash_term(term: str) -> int:
    """What the index knows a term by: 64 bits, signed as SQLite's integers are."""
    return int.from_bytes(_digest(term), "little", signed=True)


def add_fresh(
    connection: sqlite3.Connection, user_id: str, chunk_seq: int, counts: Mapping[str, int]
) -> None:
    """Adds a chunk that is in no segment, given how often each term stands in it."""
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
    """A user's chunks that are in no segment, oldest first, at most so many (-1: all)."""
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
    """A user's deleted chunks that a segment still holds."""
    import numpy as np

    rows = connection.execute("SELECT chunk_seq FROM lexical_dead WHERE user_id = ?", (user_id,))
    return np.array([row[0] for row in rows], dtype=np.int64)


def create_segment(connection: sqlite3.Connection, user_id: str, tier: int, chunks: Chunks) -> int:
    """Adds a segment without postings, which is not live yet, and answers with its seq."""
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
    """The chunks of each of a user's live segments, by its seq."""
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
    """Adds the postings of some terms, all that a segment has of each."""
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
    """The postings of a segment's terms from one hash to another, both included."""
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
    """Where terms stand: for each (segment, places, counts) of the segments that hold it."""
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

"""The lexical index: BM25 over the terms of `tokenize`, updated at once, separate per user.

The score is Robertson's BM25 with k1 = 1.2 and b = 0.75, summed over the query's terms:
`idf(t) * f * (k1 + 1) / (f + k1 * (1 - b + b * length / average length))`, where f counts a term in
a title twice, and `idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))` as in Lucene (N chunks of the user,
n with the term). Without any term the score is 0.

Adding a chunk writes one row. `storage.index.maintenance` folds fresh rows into segments, which
never change, and merges them: a log-structured merge tree (O'Neil et al., 1996,
https://doi.org/10.1007/s002360050048). Within a segment a chunk is identified by its position, and
a term by its hash. The postings of a term are the positions of its chunks, each with a count;
neighbouring terms share a row, a block.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeAlias

from storage.contexts.filters import Selection

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Floats: TypeAlias = NDArray[np.float64]

TITLE_WEIGHT = 2
K1 = 1.2
B = 0.75

# Longer queries are cut: they are pasted texts whose first terms show the topic.
MAX_QUERY_TERMS = 64
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


def add_terms(
    connection: sqlite3.Connection,
    user_id: str,
    rows: Iterable[tuple[int, Sequence[str], Sequence[str]]],
) -> None:
    """Adds chunks: rows of (seq, title terms, body terms)."""
    for seq, title, body in rows:
        counts = Counter(body)
        for term in title:
            counts[term] += TITLE_WEIGHT
        add_fresh(connection, user_id, seq, counts)


def count_chunks(connection: sqlite3.Connection, user_id: str) -> int:
    """Returns the number of a user's chunks, from precomputed sizes."""
    row = connection.execute(
        "SELECT (SELECT coalesce(sum(size), 0) FROM lexical_segments"
        " WHERE live = 1 AND user_id = :user)"
        " + (SELECT count(*) FROM lexical_fresh WHERE user_id = :user)"
        " - (SELECT count(*) FROM lexical_dead WHERE user_id = :user)"
        " + (SELECT count(*) FROM lexical_todo t JOIN chunks c"
        " ON c.seq BETWEEN t.first_seq AND t.last_seq WHERE c.user_id = :user)",
        {"user": user_id},
    ).fetchone()
    return int(row[0])


class UserIndex:
    """The index of one user: positions of segments and fresh rows in one sequence."""

    def __init__(self, connection: sqlite3.Connection, user_id: str) -> None:
        import numpy as np

        self._connection = connection
        self.user_id = user_id
        segments = read_segments(connection, user_id)
        fresh, self._fresh = read_fresh(connection, user_id)
        chunks = [*segments.values(), fresh]
        starts = np.cumsum([0, *(len(each.seqs) for each in chunks)]).tolist()
        self._starts = dict(zip(segments, starts, strict=False))
        self._fresh_start = starts[-2]
        self.seqs: Ints = np.concatenate([each.seqs for each in chunks])
        # Its number of terms; 0 if it was deleted.
        self.lengths: Floats = np.concatenate([each.lengths for each in chunks]).astype(np.float64)
        dead = self.places_of(read_dead(connection, user_id))
        self._held: dict[str, tuple[Ints, Ints]] = {}
        self._scores: dict[tuple[str, ...], Floats] = {}
        self._alive: NDArray[np.bool_] | None = None
        if len(dead):
            self.lengths[dead] = 0
            self._alive = np.ones(len(self.seqs), dtype=bool)
            self._alive[dead] = False
        self._count = len(self.seqs) - len(dead)
        # Mean length of the chunks that were not deleted.
        self.average = float(self.lengths.sum()) / max(self._count, 1)

    def matches(
        self,
        terms: Sequence[str],
        selection: Selection,
        limit: int,
        also: Collection[int] = (),
        enough: int | None = None,
    ) -> dict[int, float]:
        """Returns the best chunks that contain any of the terms: seq → score, best first.

        The scores of the chunks in `also` are added, if they contain a term. If the selection makes
        `limit` chunks costly, `enough` of them suffice.
        """
        import numpy as np

        scores = self.scores(terms)
        best = selection.first(partial(self.best, scores), limit, enough)
        if best is None:
            inside = np.zeros_like(scores)
            members = self.places_of(selection.members)
            inside[members] = scores[members]
            best = self.best(inside, limit)
        wanted = self.places_of(np.union1d(best, np.fromiter(also, dtype=np.int64)))
        found = {
            seq: score
            for seq, score in zip(self.seqs[wanted].tolist(), scores[wanted].tolist(), strict=True)
            if score > 0
        }
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))

    def group_scores(
        self, terms: Sequence[str], groups: Mapping[int, Sequence[int]]
    ) -> dict[int, float]:
        """Returns the BM25 of disjoint groups of chunks, each scored as one text.

        A term's rarity is that among the user's chunks, which outnumber the groups. A text's length
        is compared with the mean length of the given groups.
        """
        import numpy as np

        group_at = np.full(len(self.seqs), -1)
        for number, seqs in enumerate(groups.values()):
            group_at[self.places_of(np.fromiter(seqs, dtype=np.int64))] = number
        grouped = group_at >= 0
        lengths = np.zeros(len(groups))
        np.add.at(lengths, group_at[grouped], self.lengths[grouped])
        norms = _norms(lengths, float(lengths.mean()) if len(lengths) else 0.0)
        scores = np.zeros(len(groups))
        for places, counts in self.holders(terms):
            holding = group_at[places]
            inside = holding >= 0
            summed = np.bincount(holding[inside], weights=counts[inside], minlength=len(groups))
            scores += self.idf(len(places)) * _weights(summed, norms)
        return dict(zip(groups, scores.tolist(), strict=True))

    def idf(self, holders: int) -> float:
        """Returns the weight of a term that appears in this many chunks."""
        return idf(self._count, holders)

    def places_of(self, seqs: Ints) -> Ints:
        """Returns the positions of chunks, without those that are not indexed."""
        import numpy as np

        if not len(self.seqs):
            return np.empty(0, dtype=np.int64)
        order, ordered = self._ordered
        at = np.minimum(np.searchsorted(ordered, seqs), len(ordered) - 1)
        found: Ints = order[at[ordered[at] == seqs]]
        return found

    def best(self, scores: Floats, count: int) -> Ints:
        """Returns the chunks with the highest scores above 0, highest first; ties by seq."""
        import numpy as np

        places = np.flatnonzero(scores)
        if count < len(places):
            least = len(places) - max(count, 1)
            bound = np.partition(scores[places], least)[least]
            places = np.flatnonzero(scores >= bound)
        return self.seqs[places[np.lexsort((self.seqs[places], -scores[places]))][:count]]

    def scores(self, terms: Sequence[str]) -> Floats:
        """Returns the score at each position, cached for this transaction."""
        import numpy as np

        if tuple(terms) not in self._scores:
            scores = np.zeros(len(self.seqs))
            norms = _norms(self.lengths, self.average)
            for places, counts in self.holders(terms):
                scores[places] += self.idf(len(places)) * _weights(counts, norms[places])
            self._scores[tuple(terms)] = scores
        return self._scores[tuple(terms)]

    def holders(self, terms: Sequence[str]) -> Iterator[tuple[Ints, Ints]]:
        """Yields the positions and counts of each distinct term that appears anywhere."""
        different = list(dict.fromkeys(terms))[:MAX_QUERY_TERMS]
        self._read([term for term in different if term not in self._held])
        for term in different:
            if len(self._held[term][0]):
                yield self._held[term]

    def weights(self, terms: Iterable[str]) -> dict[str, float]:
        """Returns the idf of each term; the highest for a term that appears nowhere."""
        known = list(terms)
        self._read([term for term in known if term not in self._held])
        return {term: self.idf(len(self._held[term][0])) for term in known}

    def holding(self, terms: Collection[str]) -> Ints:
        """Returns the chunks that contain all terms, ascending; empty without terms."""
        import numpy as np

        different = list(dict.fromkeys(terms))
        places = [held for held, _ in self.holders(different)]
        if not different or len(places) < len(different):
            return np.empty(0, dtype=np.int64)
        return np.sort(self.seqs[reduce(np.intersect1d, places)])

    def terms_in(self, seqs: Sequence[int], terms: Collection[str]) -> dict[int, set[str]]:
        """Returns which of the terms appear in each chunk."""
        import numpy as np

        found: dict[int, set[str]] = {seq: set() for seq in seqs}
        self._read([term for term in terms if term not in self._held])
        wanted = np.zeros(len(self.seqs), dtype=bool)
        wanted[self.places_of(np.array(seqs, dtype=np.int64))] = True
        for term in terms:
            places = self._held[term][0]
            for seq in self.seqs[places[wanted[places]]].tolist():
                found[seq].add(term)
        return found

    def _read(self, terms: Sequence[str]) -> None:
        """Reads the positions of terms, cached for this transaction."""
        import numpy as np

        hashes = [hash_term(term) for term in terms]
        found = find_postings(self._connection, list(self._starts), hashes)
        for name, term in zip(terms, hashes, strict=True):
            fresh = np.flatnonzero(self._fresh.terms == term)
            parts = [
                (self._starts[segment], places, counts) for segment, places, counts in found[term]
            ]
            parts.append((self._fresh_start, self._fresh.places[fresh], self._fresh.counts[fresh]))
            places = np.concatenate([start + places for start, places, _ in parts])
            counts = np.concatenate([counts for _, _, counts in parts])
            if self._alive is not None:
                alive = self._alive[places]
                places, counts = places[alive], counts[alive]
            self._held[name] = (places, counts)

    @cached_property
    def _ordered(self) -> tuple[Ints, Ints]:
        """The positions ordered by seq, and the seqs."""
        import numpy as np

        order = np.argsort(self.seqs, kind="stable")  # quick where segments follow each other
        return order, self.seqs[order]


def idf(total: int, holders: int) -> float:
    """Returns the weight of a term in `holders` of `total` texts, as in Lucene; always above 0."""
    return math.log1p((total - holders + 0.5) / (holders + 0.5))


def _norms(lengths: Floats, average: float) -> Floats:
    norms: Floats = K1 * (1 - B + B * lengths / (average or 1.0))
    return norms


def _weights(counts: Ints | Floats, norms: Floats) -> Floats:
    weights: Floats = counts * (K1 + 1) / (counts + norms)
    return weights

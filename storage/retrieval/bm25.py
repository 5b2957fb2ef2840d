"""BM25 over a few texts in memory, such as the last entries of a session.

`storage.index.lexical` scores stored texts. Importing this imports numpy: do so on first use.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rank_bm25 import BM25Okapi

from storage.database import Database, identity_clause
from storage.index.bounded import BoundedDict
from storage.index.lexical import B, idf
from storage.memory.entries import Entries
from storage.models import Entry, Identity
from storage.tokenize import tokenize


class SmallCorpus(BM25Okapi):  # type: ignore[misc]  # the library has no types
    """A few texts as term counts, scored with the idf of the lexical index.

    Terms outside the query may be left out, also whole texts if their number counts in `total`.
    Without lengths, these do not count.
    """

    def __init__(
        self,
        texts: Sequence[Mapping[str, float]],
        *,
        lengths: Sequence[float] | None = None,
        total: int | None = None,
        k1: float = 1.5,
    ) -> None:
        self._lengths = lengths or [1] * len(texts)
        self._total = len(texts) if total is None else total
        super().__init__(texts, k1=k1, b=0 if lengths is None else B)

    def weight(self, term: str) -> float:
        """Returns the weight of a term; highest for a term that appears in no text."""
        return float(self.idf.get(term, idf(self._total, 0)))

    def scores(self, terms: Iterable[str]) -> list[float]:
        """Returns the BM25 score of each text; a repeated term counts twice."""
        return [float(score) for score in self.get_scores(terms)]

    def _initialize(self, corpus: Sequence[Mapping[str, float]]) -> Counter[str]:
        """Takes precomputed counts instead of counting words; returns document frequencies."""
        self.doc_freqs = list(corpus)
        self.doc_len = list(self._lengths)
        self.corpus_size = len(corpus)
        self.avgdl = sum(self._lengths) / (len(corpus) or 1) or 1.0
        return Counter(term for text in corpus for term in text)

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        """Computes an idf above 0; the library's own is 0 or less for frequent terms."""
        self.idf = {term: idf(self._total, holders) for term, holders in nd.items()}


REMEMBERED = 200  # maximum entries of a session that are searched; older ones stay in the record
SESSIONS = 64  # maximum sessions cached, those used last


@dataclass(frozen=True, slots=True)
class _Read:
    """An entry with its term counts."""

    entry: Entry
    terms: Counter[str]
    length: int


@dataclass(frozen=True, slots=True)
class _Corpus:
    """The searchable entries of a session at one moment, oldest first."""

    last: int
    deletions: int
    read: tuple[_Read, ...]


class Recent:
    """Searches layer 1 of memory: the last entries of a session, without recalls.

    Changes by other processes are seen at once: each search compares two numbers with the record.
    """

    def __init__(self, database: Database, entries: Entries) -> None:
        self._database = database
        self._entries = entries
        self._known: BoundedDict[tuple[Identity, str], _Corpus] = BoundedDict(SESSIONS)
        self._lock = threading.Lock()

    def search(
        self, identity: Identity, session_id: str, query: str, limit: int
    ) -> list[tuple[Entry, float]]:
        """Returns the entries of a session that contain words of a query, best first by BM25.

        A score is the share, 0 to 1, of the query's words that the entry contains, weighted by
        their rarity in the session.
        """
        wanted = list(dict.fromkeys(tokenize(query)))
        read = self._current(identity, session_id).read
        # Only the query's terms and the lengths: the same scores in a thirtieth of the time.
        held = [{term: each.terms[term] for term in wanted if term in each.terms} for each in read]
        corpus = SmallCorpus(held, lengths=[each.length for each in read])
        weights = {term: corpus.weight(term) for term in wanted}
        total = sum(weights.values())
        best = sorted(enumerate(corpus.scores(wanted)), key=lambda one: (-one[1], -one[0]))
        return [
            (read[place].entry, sum(weights[term] for term in held[place]) / total)
            for place, score in best[:limit]
            if score > 0
        ]

    def latest(self, identity: Identity, session_id: str) -> list[tuple[Entry, float]]:
        """Returns the last entries of a session, newest first, each with a score by position."""
        newest = reversed(self._current(identity, session_id).read)
        return [(each.entry, 1 / place) for place, each in enumerate(newest, 1)]

    def state(self, identity: Identity, session_id: str) -> int:
        """Returns a number that grows with every searchable entry and with every deletion."""
        last, deletions = self._state(identity, session_id)
        return (deletions << 40) + last  # a deletion may lower the last number

    def _current(self, identity: Identity, session_id: str) -> _Corpus:
        key = (identity, session_id)
        last, deletions = self._state(identity, session_id)
        with self._lock:
            known = self._known.get(key)
            if known is None or known.deletions != deletions:
                known = _Corpus(0, deletions, ())
            if known.last != last:
                new = self._entries.recent(
                    identity, session_id, REMEMBERED, after=known.last, recalls=False
                )
                read = (*known.read, *(_read(entry) for entry in reversed(new) if entry.tells))
                last = max([last, *(entry.seq for entry in new[:1])])  # may be newer
                known = _Corpus(last, deletions, read[-REMEMBERED:])
            self._known[key] = known
        return known

    def _state(self, identity: Identity, session_id: str) -> tuple[int, int]:
        """Returns the last searchable entry, and the number of deletions so far."""
        owner = identity_clause(identity, "e")
        with self._database.read() as connection:
            last = connection.execute(
                f"SELECT e.seq FROM entries e WHERE {owner.sql} AND e.session_id = ?"
                " AND e.is_recall = 0 ORDER BY e.seq DESC LIMIT 1",
                (*owner.values, session_id),
            ).fetchone()
            deletions = connection.execute(
                "SELECT value FROM meta WHERE key = 'deletions'"
            ).fetchone()
        return int(last[0] if last else 0), int(deletions[0] if deletions else 0)


def _read(entry: Entry) -> _Read:
    terms = Counter(tokenize(entry.text))
    return _Read(entry, terms, terms.total())

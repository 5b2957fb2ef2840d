"""BM25 over a few texts in memory; stored texts are scored by `storage.index.lexical`.

Importing this imports numpy: do so on first use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rank_bm25 import BM25Okapi

from storage.index.lexical import B, idf


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

"""BM25 over a few texts in memory; what is stored is scored by `storage.index.lexical`.

Importing this imports numpy: do so on first use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rank_bm25 import BM25Okapi

from storage.index.lexical import B, idf


class SmallCorpus(BM25Okapi):  # type: ignore[misc]  # the library has no types
    """A few texts, scored with the idf of the lexical index.

    Args:
        texts: How often each text has each of the query's terms; other terms may be left out.
        lengths: How many terms each text has; None where length is not to count.
        total: How many texts there are, those that have none of the terms included; by default
            as many as are given.
        k1: How slowly a term saturates that a text has more than once.
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
        """How much a term tells; one that no text has tells most."""
        return float(self.idf.get(term, idf(self._total, 0)))

    def scores(self, terms: Iterable[str]) -> list[float]:
        """The score of each text: BM25, a term that is given twice counted twice."""
        return [float(score) for score in self.get_scores(terms)]

    def _initialize(self, corpus: Sequence[Mapping[str, float]]) -> Counter[str]:
        """Takes over counts where the library would count words; says how many texts have each."""
        self.doc_freqs = list(corpus)
        self.doc_len = list(self._lengths)
        self.corpus_size = len(corpus)
        self.avgdl = sum(self._lengths) / (len(corpus) or 1) or 1.0
        return Counter(term for text in corpus for term in text)

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        """Above 0 for every term: the library's own idf is 0 or less for what half of them have."""
        self.idf = {term: idf(self._total, holders) for term, holders in nd.items()}

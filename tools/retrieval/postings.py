"""Scores tools by BM25 over weighted terms, updated with every added or removed tool.

The score of a tool is the sum over the query's different terms of
`idf(t) * f / (f + k1 * (1 - b + b * length / average length))`, where f is the weighted number of
occurrences of t in the tool's fields, length the sum of them over all terms, and
`idf(t) = ln(1 + (N - n + 0.5) / (n + 0.5))` as Lucene has it (N tools, n with the term). It is the
BM25F of Robertson, Zaragoza and Taylor (2004, https://doi.org/10.1145/1031171.1031181), without
its constant factor: a tool that held every term endlessly often would reach the sum of the idfs.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from storage.index.lexical import K1, B, idf

if TYPE_CHECKING:
    from tools.retrieval.vectors import Floats, Ints


class Postings:
    """The terms of each tool; tools are known by their slot, a small number."""

    def __init__(self) -> None:
        self._weights: dict[str, dict[int, float]] = {}
        self._terms: dict[int, tuple[str, ...]] = {}
        self._lengths = array("d")  # by slot; 0 if free
        self._total = 0.0
        self._arrays: dict[str, tuple[Ints, Floats]] = {}
        self._gains: dict[str, tuple[Ints, Floats]] = {}

    def __len__(self) -> int:
        return len(self._terms)

    def __contains__(self, term: str) -> bool:
        return term in self._weights

    def add(self, slot: int, terms: Mapping[str, float]) -> None:
        """Adds a tool in a free slot, given the weights of its terms."""
        names = tuple(map(sys.intern, terms))  # shares one string per term
        for term, weight in zip(names, terms.values(), strict=True):
            self._weights.setdefault(term, {})[slot] = weight
            self._arrays.pop(term, None)
        self._terms[slot] = names
        if slot >= len(self._lengths):
            self._lengths.extend([0.0] * (slot + 1 - len(self._lengths)))
        self._lengths[slot] = sum(terms.values())
        self._total += self._lengths[slot]
        self._gains.clear()

    def remove(self, slot: int) -> None:
        """Removes a tool if it exists, and terms that no other tool has."""
        if slot not in self._terms:
            return
        for term in self._terms.pop(slot):
            holders = self._weights[term]
            del holders[slot]
            self._arrays.pop(term, None)
            if not holders:
                del self._weights[term]
        self._total -= self._lengths[slot]
        self._lengths[slot] = 0.0
        self._gains.clear()

    def idf(self, term: str) -> float:
        """Returns a term's inverse document frequency, which is highest for an unknown term."""
        holders = len(self._weights.get(term, ()))
        return idf(len(self), holders)

    def scores(self, terms: Iterable[str], size: int) -> Floats:
        """Returns the scores of all slots below `size` for distinct terms."""
        import numpy as np

        scores = np.zeros(size, dtype=np.float32)
        for term in terms:
            if term in self._weights:
                slots, gains = self._gain(term)
                scores[slots] += gains
        return scores

    def _gain(self, term: str) -> tuple[Ints, Floats]:
        """Returns the slots that have a term, and what it adds to their scores."""
        import numpy as np

        if term not in self._gains:
            slots, weights = self._array(term)
            lengths = np.array(self._lengths)[slots]  # a copy, since a view would prevent growing
            norms = K1 * (1 - B + B * lengths * (len(self) / self._total))
            gains = self.idf(term) * weights / (weights + norms)
            self._gains[term] = slots, gains.astype(np.float32)
        return self._gains[term]

    def _array(self, term: str) -> tuple[Ints, Floats]:
        import numpy as np

        if term not in self._arrays:
            holders = self._weights[term]
            self._arrays[term] = (
                np.fromiter(holders, np.int64, len(holders)),
                np.fromiter(holders.values(), np.float32, len(holders)),
            )
        return self._arrays[term]

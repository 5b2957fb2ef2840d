"""BM25 over weighted terms, kept up with every tool that comes or goes.

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
    """Which tools hold which terms, each tool known by its slot, a small number."""

    def __init__(self) -> None:
        self._weights: dict[str, dict[int, float]] = {}
        self._terms: dict[int, tuple[str, ...]] = {}
        self._lengths = array("d")  # by slot; 0 where none is
        self._total = 0.0
        self._arrays: dict[str, tuple[Ints, Floats]] = {}
        self._gains: dict[str, tuple[Ints, Floats]] = {}

    def __len__(self) -> int:
        return len(self._terms)

    def __contains__(self, term: str) -> bool:
        return term in self._weights

    def add(self, slot: int, terms: Mapping[str, float]) -> None:
        """Adds a tool whose slot is free, given the weight of each of its terms."""
        names = tuple(map(sys.intern, terms))  # a term is kept once, however many hold it
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
        """Removes a tool if it is there; a term that no other tool holds is gone with it."""
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
        """How much a term tells; one that no tool holds tells most."""
        holders = len(self._weights.get(term, ()))
        return idf(len(self), holders)

    def scores(self, terms: Iterable[str], size: int) -> Floats:
        """The score of each slot below `size`, which is above all slots, for different terms."""
        import numpy as np

        scores = np.zeros(size, dtype=np.float32)
        for term in terms:
            if term in self._weights:
                slots, gains = self._gain(term)
                scores[slots] += gains
        return scores

    def _gain(self, term: str) -> tuple[Ints, Floats]:
        """What a term adds to the score of each slot that holds it."""
        import numpy as np

        if term not in self._gains:
            slots, weights = self._array(term)
            lengths = np.array(self._lengths)[slots]  # a copy, for a view would forbid growing
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

"""Decides whether to complete a doubtful follow-up, by what both versions find.

"Does a trailer cost extra?" has the form of a complete question. If the form leaves room for doubt,
both versions are searched. The completed one is used if its answers are much more certain.
"""

from __future__ import annotations

from storage.models import Identity, SearchFilter
from storage.retrieval.confidence import Confidence
from storage.retrieval.follow_ups.form import leaning
from storage.retrieval.search import SearchEngine

WEIGHT = 6.0  # the weight of the difference in probability, relative to the form
COMPARED = 3  # the hits that are read; each takes 12 ms of a processor


def may_lean(query: str) -> bool:
    """Returns whether a query is a follow-up by its form, or could be by its results."""
    return leaning(query) > -WEIGHT


class Completion:
    """Compares the results of a query and its completion; its methods block."""

    def __init__(self, engine: SearchEngine, confidence: Confidence) -> None:
        self._engine = engine
        self._confidence = confidence

    def is_surer(
        self, identity: Identity, query: str, completed: str, criteria: SearchFilter, sure: float
    ) -> bool:
        """Returns whether the completed query answers so much better that it should be used.

        Returns:
            Always False for languages other than English, where this was measured to mislead.
        """
        form = leaning(query)
        if form + WEIGHT * (1 - sure) <= 0:
            return False  # no probability is high enough
        hits = self._engine.search(identity, completed, criteria, COMPARED).hits
        evidence = self._confidence.evidence(query, hits)
        if any(each.known[0] != "English" for each in evidence):
            return False
        likely = max(self._confidence.rate(query, hits, evidence), default=0.0)
        return form + WEIGHT * (likely - sure) > 0

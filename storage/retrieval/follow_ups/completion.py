"""Whether a query is completed that only may be a follow-up: what is found says so.

"Does a trailer cost extra?" has the form of a question that stands alone. It is asked both ways
where its form leaves room for doubt: completed, if that finds what answers it much more surely.
"""

from __future__ import annotations

from storage.models import Identity, SearchFilter
from storage.retrieval.confidence import Confidence
from storage.retrieval.follow_ups.form import leaning
from storage.retrieval.search import SearchEngine

WEIGHT = 6.0
"""What the difference of both probabilities counts beside the form."""

COMPARED = 3
"""Hits that are read: each takes 12 ms of a processor."""


def may_lean(query: str) -> bool:
    """Whether a query leans by its form, or what is found could still say so."""
    return leaning(query) > -WEIGHT


class Completion:
    """Compares what a query and its completion find; its calls block.

    Args:
        engine: Finds.
        confidence: Says how likely what is found is to answer.
    """

    def __init__(self, engine: SearchEngine, confidence: Confidence) -> None:
        self._engine = engine
        self._confidence = confidence

    def is_surer(
        self, identity: Identity, query: str, completed: str, criteria: SearchFilter, sure: float
    ) -> bool:
        """Whether the completed query answers the query so much better that it leans.

        Args:
            identity: Whose query.
            query: The query.
            completed: The same after the one it may lean on.
            criteria: What is searched.
            sure: How likely the best that the query itself finds is to answer.

        Returns:
            False also where the language is not English: the rest was measured to mislead.
        """
        form = leaning(query)
        if form + WEIGHT * (1 - sure) <= 0:
            return False  # nothing can be that much surer
        hits = self._engine.search(identity, completed, criteria, COMPARED).hits
        evidence = self._confidence.evidence(query, hits)
        if any(each.known[0] != "English" for each in evidence):
            return False
        likely = max(self._confidence.rate(query, hits, evidence), default=0.0)
        return form + WEIGHT * (likely - sure) > 0

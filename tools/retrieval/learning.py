"""Learns from use: a tool that answered a question ranks higher for similar questions.

Uses are stored per identity. A tool's boost is its share of the past uses for similar
questions, weighted by similarity. A doubt counts as one more question for which no tool was right:

    boost(tool) = MOST * sum(w(q) * times(q, tool)) / (DOUBT + sum(w(q) * times(q)))

over the NEIGHBOURS most similar questions, with w = (similarity - LEAST_LIKE) / (1 - LEAST_LIKE).
So a single use adds at most half of MOST, and any number of uses at most MOST: a tool that fits
clearly better stays above.

Measured on 14 public sets of tools, learning from half of the questions and testing on the other:
NDCG@10 rose by 0.038 on average and fell on none. If three in ten uses were of a wrong tool, it
rose by 0.027, with a loss of 0.003 on the worst set. If half of all tools had been used, but never
a right one, it fell by 0.008.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from storage.errors import StorageError
from storage.index.bounded import BoundedDict
from storage.index.embedding_models import understands
from storage.tokenize import tokenize
from tools.core.audit.secret_patterns import redacted_text
from tools.core.unicode_safety import encodable

if TYPE_CHECKING:
    from storage.catalog.catalog import Use, Uses
    from storage.index.embedders.base import Embedder, Vectors
    from storage.models import Identity

MOST = 0.1  # the largest boost, of a score from 0 to 1; the best tool mostly scores 0.2 to 0.5
DOUBT = 1.0  # the number of questions that count as answered by no tool
LEAST_LIKE = 0.3  # the cosine above which two questions are similar
NEIGHBOURS = 20  # maximum past questions that count
# Maximum uses of one tool for one question that count: repeating a call proves little.
MOST_TIMES = 3
SEARCHES = 5  # latest searches of a session that are checked for a called tool
SESSIONS = 1_000  # maximum sessions whose searches are kept in memory
QUESTION_CHARACTERS = 300  # maximum characters of a question that are stored
VECTORS = 4_000  # maximum question vectors that are kept in memory
Search = tuple[str, set[str]]  # a question, and the tools it showed that were not called since
_logger = logging.getLogger("toolcrib")


class Learning:
    """Stores which tools answered whose questions, and boosts them for similar ones.

    Safe to share between threads. It never fails: if storage or the embedder fails, it logs a
    warning and learns or boosts nothing. Without an embedder, it compares the words of questions.
    """

    def __init__(self, uses: Uses, embedder: Embedder | None = None) -> None:
        self.shown = Shown()  # the latest search results, of which a call can be a use
        self._uses = uses
        self._similarity = _Similarity(embedder)

    def remember(self, identity: Identity, question: str, tool_id: str) -> None:
        """Stores that a tool answered a question of `question_for`; writes to disk."""
        try:
            self._uses.add(identity, question, tool_id)
        except StorageError as error:
            _logger.warning("The use of %s was not remembered: %s", tool_id, error)

    def boosts(self, identity: Identity, question: str) -> dict[str, float]:
        """Returns the boosts from past uses by tool, 0 to `MOST`; empty if none are similar."""
        try:
            uses = self._uses.listed(identity)
            return self._vote(_kept_question(question), uses) if uses else {}
        except StorageError as error:
            _logger.warning("What was learned cannot be used: %s", error)
            return {}

    def _vote(self, question: str, uses: Sequence[Use]) -> dict[str, float]:
        times: dict[str, dict[str, int]] = defaultdict(dict)
        for use in uses:
            times[use.query][use.tool_id] = min(use.count, MOST_TIMES)
        similarity = self._similarity.of(question, list(times))
        nearest = sorted(zip(similarity, times, strict=True), reverse=True)[:NEIGHBOURS]
        votes: dict[str, float] = defaultdict(float)
        total = DOUBT
        for like, query in nearest:
            if like <= LEAST_LIKE:
                break
            weight = (like - LEAST_LIKE) / (1 - LEAST_LIKE)
            total += weight * max(times[query].values())
            for tool_id, count in times[query].items():
                votes[tool_id] += weight * count
        return {tool_id: MOST * vote / total for tool_id, vote in votes.items()}


class Shown:
    """The latest searches of each session; safe to share between threads."""

    def __init__(self) -> None:
        self._searches: BoundedDict[tuple[Identity, str], deque[Search]] = BoundedDict(SESSIONS)
        self._lock = threading.Lock()

    def note(
        self, identity: Identity, session_id: str, question: str, tool_ids: Collection[str]
    ) -> None:
        """Records which tools a search showed, until they are called in the same session."""
        if not session_id:
            return
        with self._lock:
            searches = self._searches.get((identity, session_id)) or deque(maxlen=SEARCHES)
            searches.appendleft((_kept_question(question), set(tool_ids)))
            self._searches[identity, session_id] = searches

    def question_for(self, identity: Identity, session_id: str, tool_id: str) -> str | None:
        """Returns the session's latest question that showed the called tool, or None.

        Each result counts for at most one use.
        """
        with self._lock:
            for question, tools in self._searches.get((identity, session_id), ()):
                if tool_id in tools:
                    tools.remove(tool_id)
                    return question
        return None


def _kept_question(question: str) -> str:
    """Returns a question for storage: without secrets, shortened, and valid Unicode."""
    return encodable(redacted_text(" ".join(question.split()), QUESTION_CHARACTERS))


class _Similarity:
    """Compares questions by their meaning or, without an embedder, by their words."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._vectors: dict[str, Vectors] = {}
        self._lock = threading.Lock()

    def of(self, question: str, queries: Sequence[str]) -> list[float]:
        """Returns the cosine between a question and each of the others."""
        embedder = self._embedder
        if embedder is None or not understands(embedder, question):
            return _shared_words(question, queries)
        import numpy as np

        vectors = self._embedded(embedder, [*queries, question])
        cosines: list[float] = (np.stack(vectors[:-1]) @ vectors[-1]).tolist()
        return cosines

    def _embedded(self, embedder: Embedder, texts: Sequence[str]) -> list[Vectors]:
        with self._lock:
            known = {text: self._vectors[text] for text in texts if text in self._vectors}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if missing:
            known.update(zip(missing, embedder.embed_passages(missing), strict=True))
            with self._lock:
                if len(self._vectors) + len(missing) > VECTORS:
                    self._vectors.clear()
                self._vectors.update((text, known[text]) for text in missing)
        return [known[text] for text in texts]


def _shared_words(question: str, queries: Sequence[str]) -> list[float]:
    """Returns the cosine of each query's terms with the question's, all terms weighing the same."""
    asked = set(tokenize(question))
    similarity = []
    for query in queries:
        terms = set(tokenize(query))
        size = (len(asked) * len(terms)) ** 0.5
        similarity.append(len(asked & terms) / size if size else 0.0)
    return similarity

"""How like one question is to others."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from storage.tokenize import is_spaceless, tokenize

if TYPE_CHECKING:
    from storage.index.embedders.base import Embedder, Vectors

__all__ = ["Similarity"]

VECTORS = 4_000
"""Vectors of questions that are kept in memory."""


class Similarity:
    """Compares questions by their meaning, or by their words; safe to share between threads.

    Args:
        embedder: Tells their meaning; None compares their words.
    """

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._vectors: dict[str, Vectors] = {}
        self._lock = threading.Lock()

    def of(self, question: str, queries: Sequence[str]) -> list[float]:
        """The cosine of a question and each of some others.

        Raises:
            StorageUnavailableError: If the embedder's model cannot be had, or fails.
        """
        embedder = self._embedder
        if embedder is None or (is_spaceless(question) and not embedder.cjk):
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
    """The cosine of each query's terms and the question's, every term counting the same."""
    asked = set(tokenize(question))
    similarity = []
    for query in queries:
        terms = set(tokenize(query))
        size = (len(asked) * len(terms)) ** 0.5
        similarity.append(len(asked & terms) / size if size else 0.0)
    return similarity

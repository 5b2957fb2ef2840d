"""An embedder that makes no vector twice, for texts that go into several libraries."""

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from storage.index.embedders.base import Embedder

Vectors = NDArray[np.float32]


class RememberedEmbedder:
    """Another embedder, whose vectors of passages are kept in memory."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}
        self._lock = threading.Lock()
        self.model_id = embedder.model_id
        self.unread = embedder.unread
        self.floor = embedder.floor

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text."""
        with self._lock:
            fresh = [text for text in dict.fromkeys(texts) if text not in self._known]
            if fresh:
                made = self._embedder.embed_passages(fresh)
                self._known.update(zip(fresh, made, strict=True))
            return np.stack([self._known[text] for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """One vector."""
        return self._embedder.embed_query(text)

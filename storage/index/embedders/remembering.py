"""An embedder that remembers what it was asked lately."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from storage.errors import StorageUnavailableError
from storage.index.embedders.protocol import Embedder

if TYPE_CHECKING:
    from storage.index.embedders.protocol import Vectors

__all__ = ["RememberingEmbedder"]

REMEMBERED_QUERIES = 256

FAILURE_SECONDS = 10.0
"""How long a failure is repeated to searches untried: each would wait for the same refusal."""


class RememberingEmbedder:
    """Another embedder, whose recent queries and whose last failure are remembered.

    Args:
        embedder: The other one.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.model_id = embedder.model_id
        self.cjk = embedder.cjk
        self.floor = embedder.floor
        self._turn = threading.Lock()
        self._queries: OrderedDict[str, Vectors] = OrderedDict()
        self._failure: tuple[float, StorageUnavailableError] | None = None

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text, float32, unit length.

        Raises:
            StorageUnavailableError: If the model cannot be had, or fails.
        """
        vectors = self.embedder.embed_passages(texts)
        self._failure = None
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """One vector, float32, unit length.

        Raises:
            StorageUnavailableError: If the model cannot be had, or fails, or has just failed.
        """
        with self._turn:
            if text in self._queries:
                self._queries.move_to_end(text)
                return self._queries[text]
        self._check_failure()
        try:
            vector = self.embedder.embed_query(text)
        except StorageUnavailableError as error:
            self._failure = time.monotonic(), error
            raise
        with self._turn:
            self._failure = None
            self._queries[text] = vector
            if len(self._queries) > REMEMBERED_QUERIES:
                self._queries.popitem(last=False)
        return vector

    def _check_failure(self) -> None:
        failed = self._failure
        if failed is not None and time.monotonic() - failed[0] < FAILURE_SECONDS:
            error = failed[1]
            raise StorageUnavailableError(error.message, suggestions=error.suggestions) from error

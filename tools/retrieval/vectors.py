"""Holds the slower parts of the index: one vector per tool and embedder."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from storage.index.embedders.base import Embedder
from storage.index.embedders.minilm import MiniLMEmbedder
from storage.index.embedders.static import StaticEmbedder
from tools.retrieval.fields import brief_text, full_text
from tools.retrieval.models import ToolRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from storage.index.embedders.base import Vectors

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float32]
    Ints = NDArray[np.int64]

READY_SHARE = 0.5  # the share of tools that must have a vector before cosines count
MIN_ROWS = 256  # the initial number of slots in a table
COPIED = 4  # the cost of copying a vector relative to multiplying it


class SpanEmbedder(Embedder, Protocol):
    """An embedder that also embeds parts of a query."""

    def embed_spans(self, text: str, spans: Sequence[tuple[int, int]]) -> Vectors:
        """Returns one row for a text, then one for each span of its characters."""


class DensePart:
    """The vectors of one embedder, by the slots of the tools."""

    def __init__(
        self, embedder: SpanEmbedder, weight: float, text: Callable[[ToolRecord], str]
    ) -> None:
        self.embedder = embedder
        self.weight = weight
        self.text = text  # returns the text that it reads for a tool
        # Slots not yet looked up in the cache, in order of arrival.
        self.unseen: deque[int] = deque()
        self.missing: deque[int] = deque()  # slots that must be embedded, in order of arrival
        self._filled: set[int] = set()
        self._table: tuple[Vectors, Bools] | None = None  # by slot; zeros if unknown

    def lacks(self, slot: int) -> bool:
        """Returns whether a tool's vector is missing."""
        return slot not in self._filled

    def drop(self, slot: int) -> None:
        """Drops the vector of a slot, if any."""
        if slot in self._filled and self._table is not None:
            self._filled.discard(slot)
            for rows in self._table:
                rows[slot] = 0

    def put(self, slots: Sequence[int], vectors: Vectors) -> None:
        """Stores the vectors of some slots."""
        if not slots:
            return
        rows = list(slots)
        matrix, known = self._reserved(max(rows) + 1, vectors.shape[1])
        matrix[rows] = vectors
        known[rows] = True
        self._filled.update(rows)

    def share(self, tools: int) -> float:
        """Returns the share of so many tools that have a vector."""
        return len(self._filled) / tools if tools else 1.0

    def is_ready(self, tools: int) -> bool:
        """Returns whether enough of so many tools have a vector for cosines to count."""
        return self._table is not None and self.share(tools) >= READY_SHARE

    def cosines(
        self, query: Vectors, size: int, slots: Ints | None = None
    ) -> tuple[Vectors, Bools | None]:
        """Returns the cosines of a query with some slots, and which of them are known (None: all).

        Without slots these are all slots below `size`. An unknown cosine is 0. Everything runs in
        the caller's thread: BLAS would use several threads, and on a busy machine a search would
        wait ten times as long for them.
        """
        import numpy as np

        matrix, known = self._reserved(size, len(query))
        few = slots is not None and len(slots) * COPIED < size
        rows = matrix[slots] if few else matrix[:size]
        cosines: Vectors = np.einsum("ij,j->i", rows, query)
        if slots is not None and not few:
            cosines = cosines[slots]
        if len(self._filled) == size:
            return cosines, None
        return cosines, known[:size] if slots is None else known[slots]

    def _reserved(self, size: int, dimensions: int) -> tuple[Vectors, Bools]:
        """Returns the table with room for so many slots, and some spare room if it had to grow."""
        import numpy as np

        if self._table is None:
            self._table = np.zeros((0, dimensions), np.float32), np.zeros(0, np.bool_)
        matrix, known = self._table
        if size > len(matrix):
            more = max(size * 5 // 4, MIN_ROWS) - len(matrix)
            self._table = np.pad(matrix, ((0, more), (0, 0))), np.pad(known, (0, more))
        return self._table


def bundled_parts() -> tuple[DensePart, DensePart]:
    """Returns the parts of the bundled embedders: the static one, then the model."""
    return (
        DensePart(StaticEmbedder(), 0.3, full_text),
        DensePart(MiniLMEmbedder(), 0.7, brief_text),
    )

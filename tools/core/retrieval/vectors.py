"""The heavier parts of the index: one vector a tool of each embedder."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from storage.index.embedders.minilm import MiniLMEmbedder
from storage.index.embedders.protocol import Embedder
from storage.index.embedders.static import StaticEmbedder
from tools.core.retrieval.fields import brief_text, full_text
from tools.core.retrieval.models import ToolRecord

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from storage.index.embedders.protocol import Vectors

    Bools = NDArray[np.bool_]

__all__ = ["DensePart", "SpanEmbedder", "bundled_parts"]

READY_SHARE = 0.5
"""Share of the tools that must have a vector before it counts how near the query is to them."""


class SpanEmbedder(Embedder, Protocol):
    """An embedder that also tells what the parts of a query mean."""

    def embed_spans(self, text: str, spans: Sequence[tuple[int, int]]) -> Vectors:
        """One row for a text, then one for each of some spans of its characters.

        Raises:
            StorageUnavailableError: If the model cannot be had, or fails.
        """


class DensePart:
    """The vectors of one embedder, by the slots of the tools.

    Args:
        embedder: Makes them.
        weight: What it counts beside other embedders.
        text: What it reads of a tool.

    Attributes:
        embedder: Makes the vectors.
        weight: What it counts beside other embedders.
        text: What it reads of a tool.
        unseen: Slots that were not looked up in the cache yet, first come first.
        missing: Slots that have to be embedded, first come first.
    """

    def __init__(
        self, embedder: SpanEmbedder, weight: float, text: Callable[[ToolRecord], str]
    ) -> None:
        self.embedder = embedder
        self.weight = weight
        self.text = text
        self.unseen: deque[int] = deque()
        self.missing: deque[int] = deque()
        self._filled = bytearray()  # by slot
        self._count = 0
        self._matrix: Vectors | None = None

    def expect(self, slot: int) -> None:
        """Makes room for a tool, whose vector is to come."""
        if slot >= len(self._filled):
            self._filled.extend(bytes(slot + 1 - len(self._filled)))
        self.unseen.append(slot)

    def lacks(self, slot: int) -> bool:
        """Whether the vector of a tool is still to come."""
        return not self._filled[slot]

    def drop(self, slot: int) -> None:
        """Forgets the vector of a slot."""
        if slot < len(self._filled):
            self._count -= self._filled[slot]
            self._filled[slot] = 0

    def put(self, slots: Sequence[int], vectors: Vectors) -> None:
        """Takes the vectors of some slots."""
        import numpy as np  # noqa: PLC0415  # imported on first use

        if not slots:
            return
        if self._matrix is None:
            self._matrix = np.zeros((len(self._filled), vectors.shape[1]), dtype=np.float32)
        if len(self._filled) > len(self._matrix):
            grown = np.zeros((len(self._filled) * 5 // 4, vectors.shape[1]), dtype=np.float32)
            grown[: len(self._matrix)] = self._matrix
            self._matrix = grown
        self._matrix[list(slots)] = vectors
        for slot in slots:
            self._count += not self._filled[slot]
            self._filled[slot] = 1

    def share(self, tools: int) -> float:
        """The share of so many tools that have a vector."""
        return self._count / tools if tools else 1.0

    def is_ready(self, tools: int) -> bool:
        """Whether enough of so many tools have a vector for cosines to be compared."""
        return self._matrix is not None and self.share(tools) >= READY_SHARE

    def cosines(self, queries: Vectors, size: int) -> tuple[Vectors, Bools]:
        """Cosines of each query and each slot below `size`, and which slots have a vector."""
        import numpy as np  # noqa: PLC0415  # imported on first use

        found = np.zeros((len(queries), size), dtype=np.float32)
        known = np.zeros(size, dtype=np.bool_)
        if self._matrix is not None:
            reach = min(size, len(self._matrix))
            np.matmul(queries, self._matrix[:reach].T, out=found[:, :reach])
            known[:reach] = np.frombuffer(bytes(self._filled[:reach]), dtype=np.bool_)
        return found, known


def bundled_parts(minilm: SpanEmbedder | None = None) -> tuple[DensePart, DensePart]:
    """The parts of the embedders that come with the product.

    Args:
        minilm: The bundled model where it is in memory already.
    """
    return (
        DensePart(StaticEmbedder(), 0.3, full_text),
        DensePart(minilm or MiniLMEmbedder(), 0.7, brief_text),
    )

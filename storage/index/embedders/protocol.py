"""What every embedder is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

__all__ = ["DEFAULT_FLOOR", "Embedder", "scaled_cosine"]

DEFAULT_FLOOR = 0.25
"""The bundled model's floor: on Cranfield, 98 of 100 pairs that were judged relevant lie above it,
and most nonsense below."""


def scaled_cosine(cosine: float, floor: float) -> float:
    """What a cosine of the bundled model is by a model with another floor.

    Models leave their texts different room between what has nothing in common and what is the same:
    by E5 two texts that have nothing in common are at 0.8. The place between floor and 1 is kept.
    """
    return 1 - (1 - cosine) * (1 - floor) / (1 - DEFAULT_FLOOR)


class Embedder(Protocol):
    """Turns texts into vectors of unit length; safe to share between threads.

    Making one costs nothing: what it needs is imported, loaded or asked on first use.
    """

    @property
    def model_id(self) -> str:
        """Names the model, its prefixes and whatever else changes vectors; ids never mix."""

    @property
    def cjk(self) -> bool:
        """Whether the model understands Chinese, Japanese and Korean."""

    @property
    def floor(self) -> float:
        """Cosine below which two texts have nothing to do with each other."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text, float32, unit length.

        Raises:
            StorageUnavailableError: If the model cannot be had, or fails.
        """

    def embed_query(self, text: str) -> Vectors:
        """One vector, float32, unit length.

        Raises:
            StorageUnavailableError: If the model cannot be had, or fails.
        """

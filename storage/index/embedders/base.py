"""What every embedder has: the protocol, its options, and vectors of unit length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from storage.errors import StorageUnavailableError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Vectors: TypeAlias = NDArray[np.float32]
    Rows: TypeAlias = ArrayLike | Sequence[ArrayLike]

# The bundled model's floor.
#
# On Cranfield, 98 of 100 relevant pairs lie above it, and most unrelated pairs below.
DEFAULT_FLOOR = 0.25

TextKind: TypeAlias = Literal["query", "passage"]
EmbedderKind = Literal["e5", "minilm", "fastembed", "sentence-transformers", "openai"]


class Embedder(Protocol):
    """Embeds texts as vectors of unit length; can be shared between threads.

    Creating one costs nothing: modules, models and connections are loaded on first use.
    """

    @property
    def model_id(self) -> str:
        """Identifies the model, its prefixes and all else that changes vectors; ids never mix."""

    @property
    def unread(self) -> str:
        """The letters that the model does not understand, as a character class ("a-z")."""

    @property
    def floor(self) -> float:
        """The cosine similarity below which two texts are unrelated."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text, float32, unit length."""

    def embed_query(self, text: str) -> Vectors:
        """Returns one vector, float32, unit length."""


def scaled_cosine(cosine: float, floor: float) -> float:
    """Converts a cosine of the bundled model to a model with another floor.

    Models differ in the range between unrelated and identical texts: with E5, two unrelated texts
    have 0.8. The relative position between floor and 1 stays the same.
    """
    return 1 - (1 - cosine) * (1 - floor) / (1 - DEFAULT_FLOOR)


@dataclass(frozen=True, slots=True)
class EmbedderOptions:
    """The settings `embedder`, which document each option."""

    kind: EmbedderKind = "e5"
    model: str = ""
    folder: Path | None = None
    url: str = ""
    api_key: str = field(default="", repr=False)
    dimensions: int = 0
    timeout: float = 30.0
    query_prefix: str = ""
    passage_prefix: str = ""
    cjk: bool = True
    floor: float = DEFAULT_FLOOR


def unit_rows(rows: Rows, count: int, source: str) -> Vectors:
    """Normalizes rows to float32 of unit length; the zeros of a text without words stay zeros."""
    import numpy as np

    if not count:
        return np.empty((0, 0), dtype=np.float32)
    try:
        wide = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise StorageUnavailableError(
            f"{source} returned something that is not a vector: {error}."
        ) from error
    if wide.ndim != 2 or wide.shape[0] != count or not wide.shape[1]:  # noqa: PLR2004  # rows and columns
        raise StorageUnavailableError(
            f"{source} returned an array of shape {wide.shape} for {count} texts."
        )
    if not np.isfinite(wide).all():
        raise StorageUnavailableError(f"{source} returned a vector that is not finite.")
    largest = np.abs(wide).max(axis=1, keepdims=True)
    scaled = wide / np.where(largest, largest, 1)  # so that no square overflows or vanishes
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    unit: Vectors = (scaled / np.where(lengths, lengths, 1)).astype(np.float32)
    return unit

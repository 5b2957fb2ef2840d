"""Vectors from outside, brought to the promised form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from storage.errors import StorageUnavailableError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from storage.index.embedders.protocol import Vectors

__all__ = ["unit_rows"]


def unit_rows(rows: ArrayLike | Sequence[ArrayLike], count: int, source: str) -> Vectors:
    """The rows as float32 of unit length; one of nothing but zeros, a text without words, stays.

    Args:
        rows: One vector a text.
        count: How many texts there were.
        source: Who made the vectors, for the error.

    Raises:
        StorageUnavailableError: If they are not so many vectors of one length, of finite numbers.
    """
    import numpy as np

    if not count:
        return np.empty((0, 0), dtype=np.float32)
    try:
        wide = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise StorageUnavailableError(f"{source} gave what is no vector: {error}.") from error
    if wide.ndim != 2 or wide.shape[0] != count or not wide.shape[1]:  # noqa: PLR2004  # rows and columns
        raise StorageUnavailableError(
            f"{source} gave numbers of shape {wide.shape} for {count} texts."
        )
    if not np.isfinite(wide).all():
        raise StorageUnavailableError(f"{source} gave a vector that is not finite.")
    largest = np.abs(wide).max(axis=1, keepdims=True)
    scaled = wide / np.where(largest, largest, 1)  # first, lest the squares overflow or vanish
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    unit: Vectors = (scaled / np.where(lengths, lengths, 1)).astype(np.float32)
    return unit

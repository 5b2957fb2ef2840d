"""The arrays of the index, by name; numpy itself is loaded on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float32]
    Ints = NDArray[np.int64]

__all__ = ["Bools", "Floats", "Ints"]

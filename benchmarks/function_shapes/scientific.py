"""Functions as people who compute write them: arrays, frames, and numbers of any class."""

import datetime as dt
import numbers
from collections.abc import Callable
from typing import Any, SupportsFloat

import numpy as np
import numpy.typing as npt
import pandas as pd

from benchmarks.function_shapes.checks import (
    describes,
    gets,
    leaves_out,
    refuses,
    required,
    says,
    types,
)
from benchmarks.function_shapes.shape import Theme

Function = Callable[..., Any]

SCIENTIFIC = Theme("types")
SCIENTIFIC_TEXTS = Theme("texts")


@SCIENTIFIC_TEXTS.shape(
    "notes, examples and references in NumPy style",
    says("Fits a line.", "Notes", "Least squares.", "fit([1, 2])"),
    leaves_out("-----", "Heights", "The slope."),
    describes("values", "Heights."),
)
def numpy_notes(values: list[float]) -> float:
    """Fits a line.

    Parameters
    ----------
    values : list of float
        Heights.

    Returns
    -------
    float
        How steep.

    Notes
    -----
    Least squares.

    Examples
    --------
    >>> fit([1, 2])
    1.0
    """  # noqa: D416  # NumPy's sections have no colon
    return values[-1] - values[0]


@SCIENTIFIC.shape(
    "an array of floats",
    types("values", "array"),
    gets({"values": [[1, 2], [3, 4.5]]}, "(2, 2) float64 10.5"),
    refuses({"values": ["much"]}, "values"),
    refuses({"values": [[1], [2, 3]]}, "values"),
)
def array_of_floats(values: npt.NDArray[np.float64]) -> str:
    return f"{values.shape} {values.dtype} {values.sum()}"


@SCIENTIFIC.shape("an array of anything", gets({"values": [1, 2]}, 3), refuses({"values": 5}))
def array_of_anything(values: np.ndarray) -> int:
    return int(values.sum())


@SCIENTIFIC.shape(
    "what an array can be made of",
    gets({"values": [[1, 2], [3, 4]]}, 2.5),
    gets({"values": 5}, 5.0),
    gets({"values": [1, 3], "weights": [1, 0]}, 1.0),
)
def array_like(values: npt.ArrayLike, weights: npt.ArrayLike | None = None) -> float:
    shares = None if weights is None else np.asarray(weights)
    return float(np.average(np.asarray(values), weights=shares))


@SCIENTIFIC.shape(
    "numbers of numpy",
    types("count", "integer"),
    types("share", "number"),
    gets({"count": 2, "share": 0.5, "small": 7}, "int64 float32 uint8"),
    refuses({"count": "x", "share": 0.5, "small": 1}, "count"),
    refuses({"count": 2, "share": 0.5, "small": 256}, "small"),
)
def numpy_numbers(count: np.int64, share: np.float32, small: np.uint8) -> str:
    return " ".join(type(each).__name__ for each in (count, share, small))


@SCIENTIFIC.shape_made(
    "a frame",
    gets({"frame": [{"bed": "a", "size": 1}, {"bed": "b", "size": 2}]}, {"a": 1, "b": 2}),
    refuses({"frame": "a,b"}, "frame"),
)
def frame() -> Function:
    def sizes(frame: pd.DataFrame) -> dict[str, int]:
        return {str(row.bed): int(row.size) for row in frame.itertuples()}  # type: ignore[arg-type]  # the columns that are sent

    return sizes


@SCIENTIFIC.shape(
    "a series and a timestamp",
    gets({"values": [1, 3], "at": "2026-01-01T12:00:00"}, "2.0 2026"),
    refuses({"values": 1, "at": "2026-01-01"}, "values"),
    refuses({"values": [1], "at": "soon"}, "at"),
)
def series(values: pd.Series, at: pd.Timestamp) -> str:
    return f"{values.mean()} {at.year}"


@SCIENTIFIC.shape(
    "a number of any class",
    types("size", "number", "integer"),
    types("count", "integer"),
    required("size", "count", "width"),
    gets({"size": 1.5, "count": 2, "width": 3}, 6.5),
    refuses({"size": "x", "count": 2, "width": 1}, "size"),
)
def abstract_numbers(size: numbers.Real, count: numbers.Integral, width: SupportsFloat) -> float:
    return float(size) + int(count) + float(width)


@SCIENTIFIC.shape_made(
    "a zone of time", gets({"zone": "UTC"}, "0:00:00"), refuses({"zone": "Nowhere"})
)
def zone() -> Function:
    def offset(zone: dt.tzinfo) -> str:
        return str(dt.datetime(2026, 1, 1, tzinfo=zone).utcoffset())

    return offset

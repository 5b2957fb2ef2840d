"""Arrays and scalars of numpy as builtin values, without importing it."""

from __future__ import annotations

import sys
from datetime import timedelta
from fractions import Fraction
from typing import Any

__all__ = ["from_array", "from_scalar", "numbers"]

NOT_A_TIME = -(2**63)
"""What numpy keeps in the place of a duration that is missing."""
MICROSECONDS: dict[str, int | Fraction] = {
    "W": 604_800_000_000,
    "D": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
    "ns": Fraction(1, 10**3),
    "ps": Fraction(1, 10**6),
    "fs": Fraction(1, 10**9),
    "as": Fraction(1, 10**12),
}
"""How long numpy's units are; what is shorter than the smallest is cut off."""
WIDEST_FLOAT = 8
"""Bytes of the widest float that has a builtin form."""


def from_array(array: Any) -> list[Any]:
    """An array as lists, NaN kept; it is one list even if it has no dimension.

    Moments are ISO 8601, structured items objects, and items that are masked or missing None.
    """
    array = _with_dimension(array)
    if array.dtype.names:
        return [_item(item) for item in array]
    if array.dtype.kind == "M":
        return [_moments(text) for text in array.astype(str).tolist()]
    if array.dtype.kind == "m":
        unit, count = sys.modules["numpy"].datetime_data(array.dtype)
        return [_duration(number, count, unit) for number in array.astype("int64").tolist()]
    if array.dtype.kind in "fc" and array.dtype.itemsize > WIDEST_FLOAT:
        array = array.astype(float if array.dtype.kind == "f" else complex)
    return list(array.tolist())


def from_scalar(value: Any) -> Any:
    """A scalar as the builtin value that it stands for, as in `from_array`."""
    if value.dtype.names:
        return {name: _item(value[name]) for name in value.dtype.names}
    if value.dtype.kind in "SUV":
        return value.item()
    (item,) = from_array(value.reshape(1))
    return item


def _item(value: Any) -> Any:
    """What is in a field: a scalar, an array, or an object of Python's."""
    if not hasattr(value, "dtype"):
        return value
    return from_array(value) if value.ndim else from_scalar(value)


def numbers(array: Any) -> list[Any]:
    """An array of numbers or booleans as JSON, all at once; NaN and the infinities are null."""
    array = _with_dimension(array)
    if array.dtype.kind != "f":
        return list(array.tolist())
    if array.dtype.itemsize > WIDEST_FLOAT:
        array = array.astype(float)
    finite = sys.modules["numpy"].isfinite(array)
    if not finite.all():
        array = array.astype(object)
        array[~finite] = None
    return list(array.tolist())


def _duration(number: list[Any] | int | None, count: int, unit: str) -> Any:
    """A duration, as a text of ISO 8601 where Python's own cannot say it.

    Args:
        number: How many of `count` units, or lists of that.
        count: How many units are one.
        unit: As numpy names it.
    """
    if isinstance(number, list):
        return [_duration(each, count, unit) for each in number]
    if number is None or number == NOT_A_TIME:
        return None
    units = number * count
    if unit not in MICROSECONDS:
        return (
            f"{'-' if units < 0 else ''}P{abs(units)}{unit}" if unit in {"Y", "M"} else str(units)
        )
    microseconds = int(units * MICROSECONDS[unit])
    try:
        return timedelta(microseconds=microseconds)
    except OverflowError:
        return f"{'-' if units < 0 else ''}PT{abs(microseconds) // 1_000_000}S"


def _moments(texts: list[Any] | str | None) -> Any:
    """Moments as ISO 8601, without the zeros that the unit of the array adds."""
    if isinstance(texts, list):
        return [_moments(text) for text in texts]
    if texts is None or texts == "NaT":
        return None
    return texts.rstrip("0").rstrip(".") if "." in texts else texts


def _with_dimension(array: Any) -> Any:
    return array if array.ndim else array.reshape(1)

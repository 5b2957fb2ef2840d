"""Splits long work into short transactions, so that other writers are not blocked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

AT_ONCE = 2_000  # rows per transaction, or keys per statement; other writers wait some 20 to 50 ms
Value = TypeVar("Value")


def in_portions(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """Returns the values in slices of `AT_ONCE`."""
    return (values[start : start + AT_ONCE] for start in range(0, len(values), AT_ONCE))

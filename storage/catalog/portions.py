"""Portions: long work on the record in short transactions, so that other writers get their turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

AT_ONCE = 2_000
"""Rows of one transaction, or keys of one statement: other writers wait some 20 to 50 ms."""

Value = TypeVar("Value")


def in_portions(values: Sequence[Value]) -> Iterator[Sequence[Value]]:
    """The values, some at a time."""
    return (values[start : start + AT_ONCE] for start in range(0, len(values), AT_ONCE))

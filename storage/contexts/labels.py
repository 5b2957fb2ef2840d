"""Labels: the plain values in a context's metadata, which filters compare as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

LONGEST_LABEL = 256
"""Characters of a value that can be filtered by; longer ones are texts."""

_EXACT = 9e15
"""Whole numbers below it are the same as floats and as integers."""


def label_of(value: object) -> str | None:
    """The text that a value is compared by, as the view `labels_in_metadata` has it.

    Args:
        value: As it is in the metadata, or as a filter asks for it. 2 and 2.0 are the same, and so
            are true and "true".

    Returns:
        None for what is no plain value or too long.
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int() if -(2**63) <= value < 2**63:
            return str(value)
        case int() | float():
            return _number(value)
        case str() if len(value) <= LONGEST_LABEL:
            return value
    return None


def is_labelled(metadata: Mapping[str, Any], key: str, values: Iterable[str]) -> bool:
    """Whether metadata have one of some values under a key, as a filter by labels would tell."""
    found = metadata.get(key)
    labels = map(label_of, found if isinstance(found, list | tuple) else [found])
    return not {_folded(label) for label in labels if label is not None}.isdisjoint(
        map(_folded, values)
    )


def _number(value: float) -> str:
    """A number that SQLite has as a float."""
    try:
        value = float(value)
    except OverflowError:
        value = math.inf if value > 0 else -math.inf
    if value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return format(value, ".12g")


def _folded(label: str) -> bytes:
    """A label without the case of its ASCII letters, as SQLite's NOCASE compares."""
    return label.encode(errors="surrogatepass").lower()

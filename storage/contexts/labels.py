"""Labels: the plain values in a context's metadata, which filters compare as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

LONGEST_LABEL = 256
"""Maximum characters of a value that can be filtered by; longer ones are texts."""

_EXACT = 9e15
"""Below this, whole numbers are exact as floats."""


def label_of(value: object) -> str | None:
    """Returns the text by which a value is compared, as in the view `labels_in_metadata`.

    2 and 2.0 are the same, and so are true and "true". None if it is not a plain value or is too
    long.
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
    """Returns whether metadata match a filter by labels under a key."""
    found = metadata.get(key)
    labels = map(label_of, found if isinstance(found, list | tuple) else [found])
    return not {_fold_case(label) for label in labels if label is not None}.isdisjoint(
        map(_fold_case, values)
    )


def _number(value: float) -> str:
    """Formats a number that SQLite stores as a float."""
    try:
        value = float(value)
    except OverflowError:
        value = math.inf if value > 0 else -math.inf
    if value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    return format(value, ".12g")


def _fold_case(label: str) -> bytes:
    """Folds ASCII case as SQLite's NOCASE does."""
    return label.encode(errors="surrogatepass").lower()

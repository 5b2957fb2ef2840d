"""Named values that grow with every call: facts and metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from storage.errors import InvalidSourceError

__all__ = ["MAX_VALUES", "merged_values"]

MAX_VALUES = 65_536
"""Characters of JSON that named values may grow to."""


def merged_values(
    label: str, stored: Mapping[str, Any], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Named values with those given in place of those stored; None removes one.

    Raises:
        InvalidSourceError: If they would grow beyond `MAX_VALUES`.
    """
    merged = {key: value for key, value in {**stored, **given}.items() if value is not None}
    length = len(json.dumps(merged, ensure_ascii=False))
    if length > MAX_VALUES:
        raise InvalidSourceError(
            f"{label}: together with what is stored they have {length} characters of JSON;"
            f" {MAX_VALUES} are kept.",
            suggestions=("Remove what is no longer needed by giving it as null.",),
        )
    return merged

"""The plain JSON form of any Python value."""

from __future__ import annotations

import base64
import math
from collections import deque
from collections.abc import Mapping
from typing import Any

from pydantic_core import to_jsonable_python

__all__ = ["plain"]


def plain(value: object) -> Any:  # noqa: ANN401, PLR0911  # any JSON comes out, one line a type
    """A value as JSON can say it, with nothing that an encoder or a client would stumble over.

    NaN and the infinities become null, bytes become Base64 (RFC 4648, section 4), sets and tuples
    lists, dates and durations ISO 8601, an enum's member its value, and half of a surrogate pair
    a question mark. What has no JSON form becomes its `str`.

    Args:
        value: Any value; models and dataclasses become objects.

    Raises:
        ValueError: If it contains itself.
        RecursionError: If it is nested too deeply.
    """
    match value:
        case None | bool():
            return value
        case int():
            return int(value)
        case float():
            return float(value) if math.isfinite(value) else None
        case str():
            return value.encode(errors="replace").decode()
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(value).decode()
        case Mapping():
            return {_key(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset() | deque():
            return [plain(item) for item in value]
        case _:
            return plain(to_jsonable_python(value, bytes_mode="base64", fallback=str))


def _key(key: object) -> str:
    if not isinstance(key, str):
        (key,) = to_jsonable_python({key: None}, fallback=str)
    text: str = plain(key)
    return text

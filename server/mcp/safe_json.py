"""What may go over the wire: JSON that UTF-8 can carry and that clients can parse."""

from __future__ import annotations

from types import NoneType
from typing import Any

from pydantic import BaseModel

from tools.core.errors import InternalError
from tools.core.invisible import encodable

TEXTLESS = frozenset({NoneType, bool, int, float})
"""Types of values with nothing in them to make safe; results can have a million of them."""
MAX_LEVELS = 128
"""Levels of nesting in a result; parsers give up at 200, and the caller would wait for ever."""


def wire_form(model: BaseModel) -> dict[str, Any]:
    """What a model of the protocol is on the wire."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def utf8_json(value: Any, levels: int = MAX_LEVELS) -> Any:  # noqa: ANN401  # any JSON value, as decoded
    """The JSON value with each text in it, keys included, made safe as by `encodable`.

    Raises:
        InternalError: If it is nested deeper than `levels`.
    """
    if isinstance(value, str):
        return encodable(value)
    if not isinstance(value, dict | list):
        return value
    if levels == 0:
        raise InternalError(f"The answer is nested deeper than {MAX_LEVELS} levels.")
    if isinstance(value, dict):
        return {encodable(key): utf8_json(item, levels - 1) for key, item in value.items()}
    if TEXTLESS.issuperset(map(type, value)):
        return value
    return [utf8_json(item, levels - 1) for item in value]

"""What may go over the wire: JSON that UTF-8 can carry."""

from __future__ import annotations

from typing import Any

__all__ = ["utf8_json", "utf8_text"]


def utf8_text(text: str) -> str:
    """The text with each lone surrogate replaced by "?".

    File names that are not UTF-8 bring them in; the transports cannot encode them, and one would
    take down the connection with every call on it.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def utf8_json(value: Any) -> Any:  # noqa: ANN401  # any JSON value, as decoded
    """The JSON value with each text in it, keys included, made safe as by `utf8_text`."""
    if isinstance(value, str):
        return utf8_text(value)
    if isinstance(value, dict):
        return {utf8_text(key): utf8_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [utf8_json(item) for item in value]
    return value

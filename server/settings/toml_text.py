"""TOML as text: what is written into settings files, ours and clients'."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["toml_table"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_table(path: str, table: Mapping[str, Any]) -> Iterator[str]:
    """The lines of a table, and of the tables in it behind its own values.

    Args:
        path: Its dotted name, as it stands in the header.
        table: Texts, numbers, booleans, lists of these, and tables of them by their keys.
    """
    yield f"[{path}]"
    for key, value in table.items():
        if not isinstance(value, Mapping):
            yield f"{_key(key)} = {_value(value)}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield ""
            yield from toml_table(f"{path}.{_key(key)}", value)


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def _value(value: object) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return repr(value)


def _string(text: str) -> str:
    """A basic string: JSON's, but for surrogate pairs and the delete character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

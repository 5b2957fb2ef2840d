"""Bounds: dictionaries that forget what was stored longest ago, and texts that are cut."""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

KeyT = TypeVar("KeyT")
ValueT = TypeVar("ValueT")


class BoundedDict(OrderedDict[KeyT, ValueT]):
    """At most `most` entries, in the order in which they were last stored."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: KeyT, value: ValueT) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


def clip(text: str, limit: int) -> str:
    """Returns a text of at most `limit` characters; "…" replaces what is cut off."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def clip_line(text: str, limit: int) -> str:
    """Clips a text on one line, with single spaces between its words."""
    return clip(" ".join(text.split()), limit)

"""Rules by what they name first, so that a call is held against the few that could mean it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeVar

__all__ = ["Index"]

T = TypeVar("T")


class Index(Generic[T]):
    """Rules in their order, found by a key.

    Args:
        rules: The rules.
        key: What a call has to be about for a rule to mean it; None where any call may be meant.

    Attributes:
        rules: All of them.
    """

    def __init__(self, rules: Sequence[T], key: Callable[[T], str | None]) -> None:
        self.rules = tuple(rules)
        self._always: list[int] = []
        self._by_key: dict[str, list[int]] = {}
        for place, rule in enumerate(self.rules):
            found = key(rule)
            places = self._always if found is None else self._by_key.setdefault(found, [])
            places.append(place)

    def about(self, keys: Collection[str] | None) -> Sequence[T]:
        """Those that could mean a call, in their order.

        Args:
            keys: What it is about; None where that cannot be said.
        """
        if keys is None:
            return self.rules
        places = list(self._always)
        for key in keys:
            places += self._by_key.get(key, ())
        return [self.rules[place] for place in sorted(places)]

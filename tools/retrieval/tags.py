"""Which tools have which tags, in any case of letters."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from tools.retrieval.models import Match, ToolRecord

__all__ = ["Tags"]


class Tags:
    """The slots of the tools of each tag."""

    def __init__(self) -> None:
        self._slots: defaultdict[str, set[int]] = defaultdict(set)

    def add(self, slot: int, record: ToolRecord) -> None:
        """Adds the tags of a tool."""
        for tag in _folded(record.tags):
            self._slots[tag].add(slot)

    def remove(self, slot: int, record: ToolRecord) -> None:
        """Removes the tags of a tool; one that no other tool has is gone with it."""
        for tag in _folded(record.tags):
            self._slots[tag].remove(slot)
            if not self._slots[tag]:
                del self._slots[tag]

    def having(self, tags: Iterable[str], match: Match) -> set[int]:
        """The tools that have any or all of some tags; none where none are given."""
        tagged = [self._slots.get(tag, set()) for tag in _folded(tags)]
        if not tagged:
            return set()
        return set.union(*tagged) if match == "any" else set.intersection(*tagged)


def _folded(tags: Iterable[str]) -> set[str]:
    return {tag.casefold() for tag in tags}

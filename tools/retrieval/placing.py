"""Chooses the results: named tools before fitting ones, each duplicate once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from tools.retrieval.models import FROM_FILE, ToolRecord
from tools.retrieval.names import Mentions
from tools.retrieval.ranking import best_first

if TYPE_CHECKING:
    from tools.retrieval.vectors import Floats

BEGUN = 0.9  # minimum score of a tool whose name the query begins; a named one has 1


def placed(
    scores: Floats,
    mentions: Mentions,
    id_of: Callable[[int], str],
    duplicates: Duplicates,
    count: int,
) -> list[tuple[int, float]]:
    """Returns the best slots, at most `count`, with scores that never rise.

    Equal scores are ordered by id; of duplicates only the best appears.
    """
    seen: set[int] = set()
    best = _unseen(_ordered(scores, mentions, id_of), duplicates, seen)
    chosen = list(islice(best, count))
    passing = [max(slots, key=lambda slot: scores[slot]) for slots in mentions.passing if slots]
    fitting = ((slot, float(scores[slot])) for slot in passing if scores[slot] > 0)
    missed = list(_unseen(fitting, duplicates, seen))
    places = _with_last(chosen, missed, set(passing)) if len(chosen) == count else chosen
    falling = accumulate((value for _, value in places), min)
    return [(slot, value) for (slot, _), value in zip(places, falling, strict=True)]


def _with_last(
    chosen: list[tuple[int, float]], missed: list[tuple[int, float]], stay: set[int]
) -> list[tuple[int, float]]:
    """Gives up to half of the places to missed tools; those in `stay` keep theirs."""
    spare = [slot for slot, _ in chosen if slot not in stay]
    missed = missed[: min(len(chosen) // 2, len(spare))]
    leaving = set(spare[len(spare) - len(missed) :])
    stayed = [place for place in chosen if place[0] not in leaving]
    return [*stayed, *sorted(missed, key=lambda place: -place[1])]


def _ordered(
    scores: Floats, mentions: Mentions, id_of: Callable[[int], str]
) -> Iterator[tuple[int, float]]:
    # Of tools with the same name, a callable one comes before one that a file only describes.
    named = sorted(mentions.named, key=lambda slot: id_of(slot).startswith(FROM_FILE))
    yield from ((slot, 1.0) for slot in named)
    for slot in sorted(mentions.begun, key=lambda slot: (-scores[slot], id_of(slot))):
        yield slot, BEGUN + (1 - BEGUN) * float(scores[slot])
    yield from ((slot, float(scores[slot])) for slot in best_first(scores, id_of))


def _unseen(
    places: Iterator[tuple[int, float]], duplicates: Duplicates, seen: set[int]
) -> Iterator[tuple[int, float]]:
    for slot, value in places:
        if slot not in seen:
            seen.update(duplicates.group(slot))
            yield slot, value


class Duplicates:
    """Groups of tools with the same name, description and parameters."""

    def __init__(self) -> None:
        self._groups: dict[bytes, dict[int, None]] = {}
        self._prints: dict[int, bytes] = {}

    def add(self, slot: int, record: ToolRecord) -> None:
        """Adds a tool to the group of its duplicates."""
        fingerprint = _fingerprint(record)
        self._prints[slot] = fingerprint
        self._groups.setdefault(fingerprint, {})[slot] = None

    def remove(self, slot: int) -> None:
        """Removes a tool from its group."""
        fingerprint = self._prints.pop(slot)
        del self._groups[fingerprint][slot]
        if not self._groups[fingerprint]:
            del self._groups[fingerprint]

    def group(self, slot: int) -> list[int]:
        """Returns the tool and its duplicates, in the order of addition."""
        return list(self._groups[self._prints[slot]])


def _fingerprint(record: ToolRecord) -> bytes:
    # A tool in quarantine could be anything, so it has no duplicates.
    own = record.tool_id if record.names_only else ""
    definition = [own, record.bare_name, record.description, record.parameters]
    return sha256(json.dumps(definition, sort_keys=True, default=str).encode()).digest()

"""Which tools are shown: those that the query names before those that fit it, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from tools.retrieval.duplicates import Duplicates
from tools.retrieval.file_records import FROM_FILE
from tools.retrieval.names import Mentions
from tools.retrieval.ranking import best_first

if TYPE_CHECKING:
    from tools.retrieval.arrays import Floats

__all__ = ["placed"]

BEGUN = 0.9
"""Score of a tool whose name the query begins, at least; one that it names has 1."""


def placed(
    scores: Floats,
    mentions: Mentions,
    id_of: Callable[[int], str],
    duplicates: Duplicates,
    count: int,
) -> list[tuple[int, float]]:
    """The best slots, at most so many, with scores that never rise from one to the next.

    Args:
        scores: Of all slots; 0 of those that do not fit.
        mentions: The tools that the query names, of those that may be found.
        id_of: The id of the tool of a slot: what is equally good is in order of it.
        duplicates: Of tools that are the same only the best is placed.
        count: Slots at most.
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
    """Gives the last places, half of all at most, to others; some of those there have to stay."""
    spare = [slot for slot, _ in chosen if slot not in stay]
    missed = missed[: min(len(chosen) // 2, len(spare))]
    leaving = set(spare[len(spare) - len(missed) :])
    stayed = [place for place in chosen if place[0] not in leaving]
    return [*stayed, *sorted(missed, key=lambda place: -place[1])]


def _ordered(
    scores: Floats, mentions: Mentions, id_of: Callable[[int], str]
) -> Iterator[tuple[int, float]]:
    # Of one name, the tool that can be called stands before the one that a file only describes.
    named = sorted(mentions.named, key=lambda slot: id_of(slot).startswith(FROM_FILE))
    yield from ((slot, 1.0) for slot in named)
    for slot in sorted(mentions.begun, key=lambda slot: (-scores[slot], id_of(slot))):
        yield slot, BEGUN + (1 - BEGUN) * float(scores[slot])
    yield from ((slot, float(scores[slot])) for slot in best_first(scores, id_of))


def _unseen(
    places: Iterator[tuple[int, float]], duplicates: Duplicates, seen: set[int]
) -> Iterator[tuple[int, float]]:
    """The places of tools that are not the same as one before."""
    for slot, value in places:
        if slot not in seen:
            seen.update(duplicates.group(slot))
            yield slot, value

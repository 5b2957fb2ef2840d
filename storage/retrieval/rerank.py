"""One order for what was found in several places, by four signals.

Each candidate has .40 of its similarity to the query, .35 of the query's words that it holds, .15
of how little its origin is among those before it, and .10 of its length, as far as it is too short
to say much. All four are 0 to 1 and mean the same wherever a candidate comes from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

__all__ = ["Candidate", "rerank"]

SIMILARITY = 0.40
OVERLAP = 0.35
DIVERSITY = 0.15
LENGTH = 0.10

ENOUGH_CHARS = 200
"""Characters from which a passage is no longer too short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What the signals are taken from.

    Attributes:
        dense: Cosine similarity to the query; None where it has no vector, and its words speak for
            both.
        overlap: The share of the query's words that it holds, 0 to 1.
        origin: Where it comes from.
        length: Its characters.
        fused: The score that it was found with, 0 to 1, which decides between equals.
    """

    dense: float | None
    overlap: float
    origin: str
    length: int
    fused: float


def rerank(candidates: Sequence[Candidate]) -> list[tuple[int, float]]:
    """The candidates in their new order, each as its index and its score of 0 to 1.

    The best of what is left comes next; diversity is 1 for the first of an origin, then 1/2, 1/3.
    """
    own = [_own(candidate) for candidate in candidates]
    waiting: dict[str, list[int]] = {}
    for index in sorted(_indexes(own), key=lambda at: (own[at], candidates[at].fused)):
        waiting.setdefault(candidates[index].origin, []).append(index)  # the best one last
    taken = dict.fromkeys(waiting, 0)
    ranked: list[tuple[int, float]] = []
    while waiting:
        heads = {
            origin: own[left[-1]] + DIVERSITY / (1 + taken[origin])
            for origin, left in waiting.items()
        }
        best = max(heads, key=lambda origin: (heads[origin], candidates[waiting[origin][-1]].fused))
        ranked.append((waiting[best].pop(), heads[best]))
        taken[best] += 1
        if not waiting[best]:
            del waiting[best]
    return ranked


def _own(candidate: Candidate) -> float:
    """What a candidate has without regard to the others."""
    similarity = candidate.overlap if candidate.dense is None else max(candidate.dense, 0.0)
    length = min(candidate.length / ENOUGH_CHARS, 1.0)
    return SIMILARITY * similarity + OVERLAP * candidate.overlap + LENGTH * length


def _indexes(scores: Sequence[float]) -> Iterable[int]:
    """From the last to the first, so that of equals the first stays ahead."""
    return reversed(range(len(scores)))

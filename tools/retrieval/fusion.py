"""From what words and meanings tell of each tool to one number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tools.retrieval.arrays import Bools, Floats, Ints

__all__ = ["Evidence", "Nearness", "coverage", "fuse", "lift"]

LEAST_GAIN = 0.2
"""What words count, against 1 for meanings, where hardly any of the query's is found."""

MOST_GAIN = 0.8
"""What they count where one tool has all of them."""

CLAUSE_WEIGHT = 0.3
"""What being the best for a clause counts, against the whole query."""


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near a text is to the tools by one embedder.

    Attributes:
        weight: What it counts beside other embedders.
        floor: Cosine below which two texts have nothing to do with each other.
        cosines: Of each tool; 0 at most of one whose vector is to come.
        known: Which tools have a vector; None where all have.
    """

    weight: float
    floor: float
    cosines: Floats
    known: Bools | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of how each tool fits one text, the query or a clause of it.

    Attributes:
        words: Its BM25 score.
        most: What BM25 would give at most: the idfs of all the text's terms.
        nearness: By each embedder.
    """

    words: Floats
    most: float
    nearness: Sequence[Nearness]


def fuse(evidence: Evidence) -> Floats:
    """How well each tool fits a text, 0 and up, against the others.

    Words, divided by the best, count the more the best covers the text: a query whose words are
    all in one tool is about that tool, one whose words are in none is asked in other words.
    Meanings are put between the least and the greatest of all tools. A tool that an embedder has
    not read yet is judged by the rest alone, as if what is missing said the same.
    """
    import numpy as np

    best = float(evidence.words.max(initial=0.0))
    gain = LEAST_GAIN + (MOST_GAIN - LEAST_GAIN) * math.sqrt(coverage(best, evidence.most))
    fused: Floats = evidence.words * (gain / best if best else 0.0)
    if not evidence.nearness:
        return fused
    total = sum(each.weight for each in evidence.nearness)
    present: Floats | float = 0.0
    for each in evidence.nearness:
        share = each.weight / total
        fused += share * _spread(each)
        present = present + (share if each.known is None else share * each.known)
    scale: Floats = np.float32(gain + 1) / np.asarray(gain + present, dtype=np.float32)
    return fused * scale


def lift(fused: Floats, clauses: Sequence[tuple[Ints, Evidence]]) -> None:
    """Lifts the best tool of each clause, as far as its words cover the clause.

    Args:
        fused: How well each tool fits the whole query.
        clauses: Of each the tools that it is asked of, as places in `fused`, and what it tells.
    """
    lifts: dict[int, float] = {}
    for places, clause in clauses:
        if len(places):
            scores = fuse(clause)
            best = int(scores.argmax())
            sure = math.sqrt(coverage(float(clause.words[best]), clause.most))
            place = int(places[best])
            lifts[place] = max(lifts.get(place, 0.0), sure * float(scores[best]))
    for place, value in lifts.items():
        fused[place] += CLAUSE_WEIGHT * value


def coverage(score: float, most: float) -> float:
    """The share of a text's words, by what they tell, that a BM25 score stands for."""
    return min(score / most, 1.0) if most > 0 else 0.0


def _spread(nearness: Nearness) -> Floats:
    """Cosines as places between the least and the greatest; 0 for a tool that has none."""
    import numpy as np

    cosines, known = nearness.cosines, nearness.known
    present = cosines if known is None else cosines[known]
    low, high = float(present.min(initial=1.0)), float(present.max(initial=-1.0))
    if high < low:  # nothing has a vector
        return np.zeros_like(cosines)
    if high == low:  # what stands alone is the nearest
        return np.ones_like(cosines) if known is None else known.astype(np.float32)
    spread = (cosines - np.float32(low)) * np.float32(1 / (high - low))
    if known is not None:
        spread[~known] = 0.0
    return spread

"""The score of every tool for a query, from its words and its meaning."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.retrieval.postings import Postings
from tools.retrieval.vectors import DensePart

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors
    from tools.retrieval.vectors import Bools, Floats, Ints

SIDE = 0.5
"""Share of the embedder's floor that the other tools must reach, where the nearest is above it."""

CANDIDATES = 100
"""Tools that may be the best for a clause: by its words, and as many by the whole query."""

FIRST = 64
"""Tools that are put in order before more are asked for."""

LEAST_GAIN = 0.2
"""What words count, against 1 for meanings, where hardly any of the query's is found."""

MOST_GAIN = 0.8
"""What they count where one tool has all of them."""

CLAUSE_WEIGHT = 0.3
"""What being the best for a clause counts, against the whole query."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A query, analysed.

    Attributes:
        terms: The different terms of the query, then those of each of its clauses.
        meanings: The vectors of the same texts, by the parts that know enough tools.
        tagged: Whether the tools that count were chosen by their tags.
    """

    terms: Sequence[Sequence[str]]
    meanings: Sequence[tuple[DensePart, Vectors]]
    tagged: bool = False


def score(
    inquiry: Inquiry,
    postings: Postings,
    size: int,
    allowed: Collection[int] | None,
    boosts: Mapping[int, float],
) -> Floats:
    """Returns the score of each slot below `size`, 0 to 1; 0 for a tool that does not fit.

    A tool fits that has one of the words, or is near to the query: by the main embedder, or where
    that or the words have something to show, by another. An embedder finds something near where
    some tool is nearer than two texts are that have nothing in common, and near is what is not far
    from that itself; to nonsense nothing is. What was chosen by its tags has something in common.

    The best tool by words and main embedder scores what share of the words it covers, or the place
    of that embedder's greatest cosine between its floor and 1, whichever is more; the others in
    proportion. Only the slots in `allowed` count (None means all), and boosts are added last.
    """
    import numpy as np

    slots = np.arange(size) if allowed is None else np.fromiter(allowed, np.int64, len(allowed))
    words = postings.scores(inquiry.terms[0], size)
    whole = _evidence(inquiry, 0, postings, words, None if allowed is None else slots)
    fused = _fuse(whole)
    likely = _top(fused)
    clauses = [
        _clause(inquiry, number, postings, size, slots, likely)
        for number in range(1, len(inquiry.terms))
    ]
    _lift(fused, clauses)
    scores = np.zeros(size, dtype=np.float32)
    scores[slots] = _settled(fused, whole, tagged=inquiry.tagged)
    for slot, boost in boosts.items():
        if allowed is None or slot in allowed:
            scores[slot] += boost
    return np.clip(scores, 0.0, 1.0)


def _settled(fused: Floats, whole: _Evidence, *, tagged: bool) -> Floats:
    """Scores in proportion to what the best tool is worth; 0 for what does not fit."""
    import numpy as np

    fits, nearest = whole.words > 0, 0.0
    embedders = sorted(whole.nearness, key=lambda each: -each.weight)
    if embedders:
        nearest, near = _near(embedders[0], tagged=tagged)
        fits |= near
    sure: Floats = np.where(fits, fused, np.float32(0.0))
    if sure.max(initial=0.0) <= 0:
        return sure
    best = int(sure.argmax())
    strength = max(nearest, _coverage(float(whole.words[best]), whole.most))
    for each in embedders[1:]:
        fits |= _near(each, tagged=tagged)[1]
    settled: Floats = np.where(fits, fused, np.float32(0.0)) * (strength / fused[best])
    return settled


def _near(nearness: _Nearness, *, tagged: bool) -> tuple[float, Bools]:
    """How near the nearest tool is, 1 at most, and which ones are near; none is if that is not."""
    floor = 0.0 if tagged else nearness.floor
    nearest = (float(nearness.cosines.max(initial=0.0)) - floor) / (1 - floor)
    return nearest, nearness.cosines >= (floor * SIDE if nearest > 0 else math.inf)


def best_first(scores: Floats, id_of: Callable[[int], str]) -> Iterator[int]:
    """The slots of all scores above 0, best first; what is equally good, by its id."""
    import numpy as np

    left = np.flatnonzero(scores > 0)
    count = FIRST
    while len(left):
        values = scores[left]
        least = np.partition(values, -count)[-count] if len(left) > count else values.min()
        head = left[values >= least].tolist()
        yield from sorted(head, key=lambda slot: (-scores[slot], id_of(slot)))
        left = left[values < least]
        count *= 4


def _evidence(
    inquiry: Inquiry, number: int, postings: Postings, words: Floats, slots: Ints | None
) -> _Evidence:
    """What a text of the inquiry tells of some tools; None for all."""
    nearness = []
    for part, rows in inquiry.meanings:
        cosines, known = part.cosines(rows[number], len(words), slots)
        nearness.append(_Nearness(part.weight, part.embedder.floor, cosines, known))
    most = sum(map(postings.idf, inquiry.terms[number]))
    return _Evidence(words if slots is None else words[slots], most, nearness)


def _clause(
    inquiry: Inquiry, number: int, postings: Postings, size: int, slots: Ints, likely: Ints
) -> tuple[Ints, _Evidence]:
    """What a clause tells of the tools that may be the best for it, and their places in `slots`.

    Those are the best by the clause's words, and those that are likely for the whole query.
    """
    import numpy as np

    words = postings.scores(inquiry.terms[number], size)
    places = np.union1d(_top(words[slots]), likely)
    return places, _evidence(inquiry, number, postings, words, slots[places])


def _top(scores: Floats) -> Ints:
    """The places of the highest scores above 0."""
    import numpy as np

    places = np.flatnonzero(scores > 0)
    if len(places) <= CANDIDATES:
        return places
    return places[np.argpartition(scores[places], -CANDIDATES)[-CANDIDATES:]]


@dataclass(frozen=True, slots=True)
class _Nearness:
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
class _Evidence:
    """What is known of how each tool fits one text, the query or a clause of it.

    Attributes:
        words: Its BM25 score.
        most: What BM25 would give at most: the idfs of all the text's terms.
        nearness: By each embedder.
    """

    words: Floats
    most: float
    nearness: Sequence[_Nearness]


def _fuse(evidence: _Evidence) -> Floats:
    """How well each tool fits a text, 0 and up, against the others.

    Words, divided by the best, count the more the best covers the text: a query whose words are
    all in one tool is about that tool, one whose words are in none is asked in other words.
    Meanings are put between the least and the greatest of all tools. A tool that an embedder has
    not read yet is judged by the rest alone, as if what is missing said the same.
    """
    import numpy as np

    best = float(evidence.words.max(initial=0.0))
    gain = LEAST_GAIN + (MOST_GAIN - LEAST_GAIN) * math.sqrt(_coverage(best, evidence.most))
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


def _lift(fused: Floats, clauses: Sequence[tuple[Ints, _Evidence]]) -> None:
    """Lifts the best tool of each clause, as far as its words cover the clause.

    Args:
        fused: How well each tool fits the whole query.
        clauses: Of each the tools that it is asked of, as places in `fused`, and what it tells.
    """
    lifts: dict[int, float] = {}
    for places, clause in clauses:
        if len(places):
            scores = _fuse(clause)
            best = int(scores.argmax())
            sure = math.sqrt(_coverage(float(clause.words[best]), clause.most))
            place = int(places[best])
            lifts[place] = max(lifts.get(place, 0.0), sure * float(scores[best]))
    for place, value in lifts.items():
        fused[place] += CLAUSE_WEIGHT * value


def _coverage(score: float, most: float) -> float:
    """The share of a text's words, by what they tell, that a BM25 score stands for."""
    return min(score / most, 1.0) if most > 0 else 0.0


def _spread(nearness: _Nearness) -> Floats:
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

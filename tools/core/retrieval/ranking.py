"""The score of every tool for a query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.core.retrieval.fusion import Evidence, Nearness, add_clauses, coverage, fuse
from tools.core.retrieval.postings import Postings
from tools.core.retrieval.vectors import DensePart

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from storage.index.embedders.protocol import Vectors

    Floats = NDArray[np.float32]
    Ints = NDArray[np.int64]

__all__ = ["Inquiry", "best_first", "score"]

SIDE = 0.5
"""Share of the embedder's floor that the other tools must reach, where the nearest is above it."""

FIRST = 64
"""Tools that are put in order before more are asked for."""


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A query, analysed.

    Attributes:
        terms: The different terms of the query, then those of each of its clauses.
        meanings: The vectors of the same texts, by the parts that know enough tools.
    """

    terms: Sequence[Sequence[str]]
    meanings: Sequence[tuple[DensePart, Vectors]]


def score(
    inquiry: Inquiry,
    postings: Postings,
    size: int,
    allowed: Collection[int] | None,
    boosts: Mapping[int, float],
) -> Floats:
    """The score of each slot below `size`, 0 to 1; 0 for a tool that does not fit.

    A tool fits that has one of the words. Without any it does where some tool is nearer to the
    query than two texts are that have nothing in common, and it is not far from that itself: of
    nonsense nothing is near. The best tool scores what share of the words it covers, or the place
    of the greatest cosine between the floor and 1, whichever is more; the others in proportion.

    Args:
        inquiry: The query.
        postings: The words of the tools.
        size: A number above all slots.
        allowed: The slots that count; None for all.
        boosts: What is added to the scores of some slots.
    """
    import numpy as np  # noqa: PLC0415  # imported on first use

    slots = np.arange(size) if allowed is None else np.fromiter(allowed, np.int64, len(allowed))
    whole, *clauses = _evidence(inquiry, postings, size, None if allowed is None else slots)
    fused = fuse(whole)
    add_clauses(fused, clauses)
    fits = whole.words > 0
    nearest = 0.0
    if whole.nearness:
        main = max(whole.nearness, key=lambda each: each.weight)
        nearest = (float(main.cosines.max(initial=0.0)) - main.floor) / (1 - main.floor)
        if nearest > 0:
            fits |= main.cosines >= main.floor * SIDE
    fused[~fits] = 0.0
    scores = np.zeros(size, dtype=np.float32)
    if fused.max(initial=0.0) > 0:
        best = int(fused.argmax())
        strength = max(nearest, coverage(float(whole.words[best]), whole.most))
        scores[slots] = fused * (strength / fused[best])
    for slot, boost in boosts.items():
        if allowed is None or slot in allowed:
            scores[slot] += boost
    return np.clip(scores, 0.0, 1.0)


def best_first(scores: Floats, name: Callable[[int], str]) -> Iterator[int]:
    """The slots of all scores above 0, best first; what is equally good, by its id."""
    import numpy as np  # noqa: PLC0415  # imported on first use

    left = np.flatnonzero(scores > 0)
    count = FIRST
    while len(left):
        values = scores[left]
        least = np.partition(values, -count)[-count] if len(left) > count else values.min()
        head = left[values >= least].tolist()
        yield from sorted(head, key=lambda slot: (-scores[slot], name(slot)))
        left = left[values < least]
        count *= 4


def _evidence(
    inquiry: Inquiry, postings: Postings, size: int, allowed: Ints | None
) -> list[Evidence]:
    """What the query and each of its clauses tell of the allowed tools."""
    known = [
        (part.weight, part.embedder.floor, *part.cosines(rows, size))
        for part, rows in inquiry.meanings
    ]
    evidence: list[Evidence] = []
    for row, terms in enumerate(inquiry.terms):
        words = postings.scores(terms, size)
        nearness = [
            Nearness(weight, floor, cosines[row], filled)
            for weight, floor, cosines, filled in known
        ]
        if allowed is not None:
            words = words[allowed]
            nearness = [
                Nearness(
                    each.weight,
                    each.floor,
                    each.cosines[allowed],
                    None if each.known is None else each.known[allowed],
                )
                for each in nearness
            ]
        evidence.append(Evidence(words, sum(map(postings.idf, terms)), nearness))
    return evidence

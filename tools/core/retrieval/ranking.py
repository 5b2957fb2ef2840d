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

    The best tool has the share of the query's words that it covers, or its cosine between the
    embedder's floor and 1, whichever is more; the others have less in proportion.

    Args:
        inquiry: The query.
        postings: The words of the tools.
        size: A number above all slots.
        allowed: The slots that count; None for all.
        boosts: What is added to the scores of some slots.
    """
    import numpy as np  # noqa: PLC0415  # imported on first use

    slots = np.arange(size) if allowed is None else np.fromiter(allowed, np.int64, len(allowed))
    texts = _evidence(inquiry, postings, size, None if allowed is None else slots)
    whole = texts[0]
    fits = whole.words > 0
    for part, near in zip((part for part, _ in inquiry.meanings), whole.nearness, strict=True):
        fits |= near.cosines >= part.embedder.floor
    fused = fuse(whole)
    add_clauses(fused, texts[1:])
    fused[~fits] = 0.0
    scores = np.zeros(size, dtype=np.float32)
    if len(fused) and fused.max() > 0:
        best = int(fused.argmax())
        scores[slots] = fused * (_strength(inquiry, whole, best) / fused[best])
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
    known = [(part.weight, *part.cosines(rows, size)) for part, rows in inquiry.meanings]
    evidence: list[Evidence] = []
    for row, terms in enumerate(inquiry.terms):
        words = postings.scores(terms, size)
        nearness = [
            Nearness(weight, cosines[row], None if filled.all() else filled)
            for weight, cosines, filled in known
        ]
        if allowed is not None:
            words = words[allowed]
            nearness = [
                Nearness(
                    each.weight,
                    each.cosines[allowed],
                    None if each.known is None else each.known[allowed],
                )
                for each in nearness
            ]
        evidence.append(Evidence(words, sum(map(postings.idf, terms)), nearness))
    return evidence


def _strength(inquiry: Inquiry, whole: Evidence, best: int) -> float:
    """How well the best tool fits, taken by itself."""
    strength = coverage(float(whole.words[best]), whole.most)
    for (part, _), near in zip(inquiry.meanings, whole.nearness, strict=True):
        floor = part.embedder.floor
        strength = max(strength, (float(near.cosines[best]) - floor) / (1 - floor))
    return strength

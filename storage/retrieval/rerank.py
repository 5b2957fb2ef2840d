"""One order for what was found in several places, by four signals.

A candidate gets .40 of its similarity to the query, .35 of the query's words that it has, .15 of
how few of its origin stand before it, and .10 of its length, as far as it is too short to say much.
Similarity and words are cosine and BM25 as shares of the best candidate's, and what stands around a
passage counts as it does in the search. `benchmarks.rerank` measures what this does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from storage.models import SearchHit
from storage.retrieval.surroundings import Around

__all__ = ["Candidate", "candidates_of", "rerank"]

SIMILARITY = 0.40
WORDS = 0.35
DIVERSITY = 0.15
LENGTH = 0.10

ENOUGH_CHARS = 200
"""Characters from which a text is no longer too short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What the signals are taken from.

    Attributes:
        similarity: Cosine as a share of the best one's, 0 to 1; None where there is none, and the
            words speak for both.
        words: BM25 as a share of the best one's, 0 to 1.
        origin: Where it comes from.
        length: Its characters.
        around: What stands around it; None where nothing does.
    """

    similarity: float | None
    words: float
    origin: str
    length: int
    around: Around | None = None


def candidates_of(
    hits: Sequence[SearchHit], origins: Sequence[str], *, by_meaning: bool
) -> list[Candidate]:
    """The hits of one search as candidates.

    Args:
        hits: Best first.
        origins: Where each comes from.
        by_meaning: Whether their vectors tell anything; not so where the embedder does not
            understand the query's language.
    """
    nearest = max((hit.dense or 0.0 for hit in hits), default=0.0)
    most = max((hit.lexical for hit in hits), default=0.0)
    return [
        Candidate(
            similarity=_share(hit.dense, nearest) if by_meaning and hit.dense is not None else None,
            words=_share(hit.lexical, most),
            origin=origin,
            length=len(hit.chunk.content),
            around=_around(hit),
        )
        for hit, origin in zip(hits, origins, strict=True)
    ]


def rerank(candidates: Sequence[Candidate]) -> list[tuple[int, float]]:
    """The candidates in their new order, each as its index and its score of 0 to 1.

    The best of what is left comes next; of equals the first.
    """
    own = [_own(candidate) for candidate in candidates]
    waiting: dict[str, list[int]] = {}
    for index in sorted(range(len(own)), key=lambda index: (own[index], -index)):
        waiting.setdefault(candidates[index].origin, []).append(index)  # the best one last
    taken = dict.fromkeys(waiting, 0)
    ranked = []
    for _ in candidates:
        scores = {
            left[-1]: own[left[-1]] + DIVERSITY * (1 - taken[origin] / len(candidates))
            for origin, left in waiting.items()
            if left
        }
        best = max(scores, key=lambda index: (scores[index], -index))
        ranked.append((best, scores[best]))
        waiting[candidates[best].origin].pop()
        taken[candidates[best].origin] += 1
    return ranked


def _own(candidate: Candidate) -> float:
    """What a candidate has without regard to the others."""
    similarity = candidate.words if candidate.similarity is None else candidate.similarity
    fits = (SIMILARITY * similarity + WORDS * candidate.words) / (SIMILARITY + WORDS)
    if candidate.around is not None:
        fits = candidate.around.blend(fits)
    length = min(candidate.length / ENOUGH_CHARS, 1.0)
    return (SIMILARITY + WORDS) * fits + LENGTH * length


def _around(hit: SearchHit) -> Around | None:
    if hit.surroundings is None:
        return None
    return Around(hit.surroundings, hit.surroundings_weight)


def _share(value: float, most: float) -> float:
    return max(value, 0.0) / most if most > 0 else 0.0

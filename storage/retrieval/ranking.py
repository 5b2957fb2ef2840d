"""Ranking: combines scores of several kinds into one order; all weights except the surroundings'.

A search fuses keyword and semantic scores. Each kind is scaled to 0..1 over the candidates, BM25
with its minimum fixed at 0, and a chunk gets `alpha * dense + (1 - alpha) * lexical`. A weighted
sum of actual scores was measured better than rank fusion, which ignores how much better a hit is.

Hits of several origins are reranked by four signals: .40 for similarity to the query, .35 for the
query's words, .15 for how few hits of the same origin come before, and .10 for length, which
penalizes texts too short to be useful. Similarity and words are cosine and BM25 as shares of the
best candidate's, and the surroundings of a passage count as in the search. `benchmarks.rerank`
measures the effect.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from storage.index.embedders.base import DEFAULT_FLOOR, Embedder, understands
from storage.memory.models import Entry
from storage.models import SearchHit
from storage.retrieval.merge_guards import can_say_the_same
from storage.retrieval.routing import MEMORY
from storage.tokenize import terms_of

ALPHA = 0.5  # the default weight of the dense score, 0 to 1
CJK_ALPHA = 0.1  # its weight if the embedder does not understand the query's language
CANDIDATES = 100  # candidates of each kind
ENOUGH = 20  # candidates of each kind that suffice under a filter for few hits
SIMILARITY = 0.40
WORDS = 0.35
DIVERSITY = 0.15
LENGTH = 0.10
ENOUGH_CHARS = 200  # characters from which a text is long enough
SAME_WORDS = 0.9  # the share of words that near-duplicates have in common
LONG_WORD = 15  # average characters per word from which a text is considered to have no spaces


@dataclass(frozen=True, slots=True)
class Around:
    """How well the surroundings of a chunk match a query."""

    score: float  # 0 to 1
    weight: float  # their weight; the chunk's own score has the weight 1

    def blend(self, own: float) -> float:
        """Combines a chunk's own score with that of its surroundings, 0 to 1."""
        return (own + self.weight * self.score) / (1 + self.weight)


def balance(
    query: str, embedder: Embedder, default: float, alpha: float | None
) -> tuple[float, float]:
    """Returns the weight of the dense score for a query, and the similarity floor.

    A weight set by the caller (`alpha`) counts regardless of the language.
    """
    if alpha is not None:
        return alpha, embedder.floor
    if not understands(embedder, query):
        return min(default, CJK_ALPHA), math.inf  # it cannot find texts it does not understand
    return default, embedder.floor


def fuse(
    dense: Mapping[int, float],
    lexical: Mapping[int, float],
    alpha: float,
    floor: float = DEFAULT_FLOOR,
) -> dict[int, float]:
    """Fuses two scores: alpha * dense + (1 - alpha) * lexical, each scaled over the candidates.

    Cosines are scaled from their minimum and maximum to 0..1, BM25 from 0 and its maximum. A
    candidate without a cosine is not embedded yet, and its lexical score counts for both. One
    without any of the query's words must reach the floor.
    """
    low, high = min(dense.values(), default=0.0), max(dense.values(), default=0.0)
    top = max(lexical.values(), default=0.0)
    fused = {}
    for seq in dense.keys() | lexical.keys():
        similarity, words = dense.get(seq), lexical.get(seq, 0.0)
        if words <= 0 and (similarity is None or similarity < floor):
            continue
        share = words / top if top > 0 else 0.0
        if similarity is None:
            fused[seq] = share
        else:
            near = (similarity - low) / (high - low) if high > low else 1.0
            fused[seq] = alpha * near + (1 - alpha) * share
    return fused


@dataclass(frozen=True, slots=True, kw_only=True)
class UnifiedHit:
    """A stored passage, or an entry of the session."""

    origin: str  # its origin: "memory", a source's name, or "documents", "knowledge" or "events"
    layer: int  # its layer of memory, 1 to 4; 0 if it is not a memory
    score: float  # the probability that it answers, 0 to 1; during ranking, how well it matches
    lexical: float  # BM25 of a passage; for an entry the share of the query's words it contains
    passage: SearchHit | None = None  # the passage, with its scores
    entry: Entry | None = None  # the entry of layer 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """The signals of a hit for reranking."""

    # Cosine as a share of the best one's, 0 to 1; None if there is none, and then the words count
    # for both.
    similarity: float | None
    words: float  # BM25 as a share of the best one's, 0 to 1
    origin: str
    length: int
    around: Around | None = None  # its surroundings; None if it has none


def candidates_of(
    hits: Sequence[SearchHit], origins: Sequence[str], *, by_meaning: bool
) -> list[Candidate]:
    """Returns the hits of one search, best first, as candidates.

    Their vectors count only if the embedder understands the query's language (`by_meaning`).
    """
    nearest = max((hit.dense or 0.0 for hit in hits), default=0.0)
    most = max((hit.lexical for hit in hits), default=0.0)
    return [
        Candidate(
            similarity=_share(hit.dense, nearest) if by_meaning and hit.dense is not None else None,
            words=_share(hit.lexical, most),
            origin=origin,
            length=len(hit.chunk.content),
            around=None
            if hit.surroundings is None
            else Around(hit.surroundings, hit.surroundings_weight),
        )
        for hit, origin in zip(hits, origins, strict=True)
    ]


def rerank(candidates: Sequence[Candidate]) -> list[tuple[int, float]]:
    """Returns the candidates in their new order, each as its index and its score of 0 to 1.

    The best remaining candidate comes next; ties keep their order.
    """
    own = [_own(candidate) for candidate in candidates]
    waiting: dict[str, list[int]] = {}
    for index in sorted(range(len(own)), key=lambda index: (own[index], -index)):
        waiting.setdefault(candidates[index].origin, []).append(index)  # best last
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
    similarity = candidate.words if candidate.similarity is None else candidate.similarity
    fits = (SIMILARITY * similarity + WORDS * candidate.words) / (SIMILARITY + WORDS)
    if candidate.around is not None:
        fits = candidate.around.blend(fits)
    length = min(candidate.length / ENOUGH_CHARS, 1.0)
    return (SIMILARITY + WORDS) * fits + LENGTH * length


def _share(value: float, most: float) -> float:
    return max(value, 0.0) / most if most > 0 else 0.0


def with_entries(
    query: str,
    hits: Sequence[SearchHit],
    passages: Sequence[Candidate],
    entries: Sequence[tuple[Entry, float]],
) -> list[Candidate]:
    """Returns passages and entries as candidates of one order.

    An entry has only a word score. It counts like the passage with the most of the query's words,
    in proportion to its own share of them; if no passage has any, by its share.
    """
    words = len(set(terms_of(query).values()))
    most = max(
        range(len(hits)), key=lambda at: (len(hits[at].matched_terms), hits[at].score), default=None
    )
    twin, scale = None, 1.0
    if most is not None and hits[most].matched_terms:
        twin, scale = passages[most], words / len(hits[most].matched_terms)
    return [*passages, *(_as_candidate(entry, share * scale, twin) for entry, share in entries)]


def _as_candidate(entry: Entry, share: float, twin: Candidate | None) -> Candidate:
    """Scores an entry like a passage with all words, in proportion to its share of them."""
    similarity = None if twin is None else twin.similarity
    words = 1.0 if twin is None else twin.words
    return Candidate(
        similarity=None if similarity is None else min(share * similarity, 1.0),
        words=min(share * words, 1.0),
        origin=MEMORY,
        length=len(entry.text),
    )


@dataclass(frozen=True, slots=True)
class _Chosen:
    origin: str
    raw: str
    text: str
    words: frozenset[str]


def distinct(
    hits: Sequence[UnifiedHit], limit: int, mentioned: Sequence[frozenset[str]] = ()
) -> list[UnifiedHit]:
    """Returns the best hits without near-duplicates.

    Duplicates are identical texts of any origin, or nearly the same words in different origins;
    within one origin, small differences mean another version. Names, numbers and negations must be
    the same. An entry is left out if every context it mentions was found.
    """
    found = {hit.passage.context.id for hit in hits if hit.passage is not None}
    distinct_hits: list[UnifiedHit] = []
    chosen: list[_Chosen] = []
    for number, hit in enumerate(hits):
        if len(distinct_hits) == limit:
            break
        if mentioned and mentioned[number] and mentioned[number] <= found:
            continue
        fresh = _Chosen(hit.origin, *_normalize(hit))
        if not any(_say_the_same(each, fresh) for each in chosen):
            distinct_hits.append(hit)
            chosen.append(fresh)
    return distinct_hits


def _normalize(hit: UnifiedHit) -> tuple[str, str, frozenset[str]]:
    """Returns the text of a hit, its normalized form, and its words."""
    text = ""
    if hit.passage is not None:
        text = hit.passage.chunk.content
    elif hit.entry is not None:
        text = hit.entry.text
    words = text.casefold().split()
    folded = " ".join(words)
    if len(folded) > LONG_WORD * len(words):
        return text, folded, frozenset(folded[at : at + 2] for at in range(len(folded) - 1))
    return text, folded, frozenset(words)


def _say_the_same(one: _Chosen, other: _Chosen) -> bool:
    if one.text == other.text:
        return True
    fewer, more = sorted((len(one.words), len(other.words)))
    if one.origin == other.origin or fewer < SAME_WORDS * more:
        return False
    common = len(one.words & other.words)
    similar = common >= SAME_WORDS * (fewer + more - common)
    return similar and can_say_the_same(one.raw, other.raw)

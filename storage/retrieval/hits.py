"""Builds hits from found chunks, with the query's words in each."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from storage.contexts.contexts import load_chunks
from storage.index.lexical import UserIndex
from storage.models import SearchHit
from storage.retrieval.follow_ups.words import FUNCTION_CHARACTERS, FUNCTION_WORDS
from storage.retrieval.ranking import Around
from storage.tokenize import fold_accents

# The share of a word's letters, from its beginning, that count as a match.
#
# The rest may be an ending, or another part of a compound.
PART = 0.6
LEAST = 4  # minimum letters that count as a match
STRADDLING = 0.3  # the weight of a pair with one function character, since it is not a word
_ASKED_FOR = frozenset("名称叫类型种时期候")  # characters that name the kind of answer
_EMPTY = FUNCTION_CHARACTERS | _ASKED_FOR


@dataclass(frozen=True, slots=True)
class Matched:
    """Which of a query's words appear in each of some chunks."""

    # The words of each chunk, by seq, in the query's order.
    words: Mapping[int, Sequence[str]] = field(default_factory=dict)
    # The idf of each of the query's words, without those that have no topic.
    weights: Mapping[str, float] = field(default_factory=dict)
    rarest: float = 1.0  # the weight of a word that appears in a single chunk
    # Share of the query's names that appear nowhere in a chunk's session, by seq.
    missing: Mapping[int, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        index: UserIndex,
        seqs: Sequence[int],
        words: Mapping[str, str],
        names: Collection[str] = (),
        sessions: Mapping[int, Sequence[int]] = MappingProxyType({}),
    ) -> Matched:
        """Looks up the words."""
        present = index.terms_in(seqs, words)
        found = {
            seq: list(dict.fromkeys(word for term, word in words.items() if term in terms))
            for seq, terms in present.items()
        }
        weights: dict[str, float] = {}
        for term, weight in index.weights(words).items():  # the rarest of a word's terms counts
            weights[words[term]] = max(weight, weights.get(words[term], 0.0))
        telling = {word: each * _telling(word) for word, each in weights.items()}
        weights = {word: each for word, each in telling.items() if each} or weights
        rarest = index.idf(1)
        named = {term: word for term, word in words.items() if word in names}
        if not named:  # the usual case; sessions may be long
            return cls(found, weights, rarest)
        count = len(set(named.values()))
        holding = index.terms_in(list({seq for some in sessions.values() for seq in some}), named)
        missing = {
            seq: 1 - len({named[term] for near in some for term in holding[near]}) / count
            for seq, some in sessions.items()
        }
        return cls(found, weights, rarest, missing)

    def share(self, seq: int, text: str) -> float:
        """Returns the share of the query's words in a chunk, whole or in large part, 0 to 1."""
        if not self.weights:  # empty query
            return 0.0
        words, folded = self.words.get(seq, ()), fold_accents(text).casefold()
        present = (
            weight
            for word, weight in self.weights.items()
            if word in words or _is_partly_in(folded, word)
        )
        return sum(present) / (sum(self.weights.values()) or 1.0)


def _telling(word: str) -> float:
    """Returns the share of a word's weight that concerns the topic, 0 to 1."""
    if word.lower() in FUNCTION_WORDS or _EMPTY.issuperset(word):
        return 0.0
    return STRADDLING if not _EMPTY.isdisjoint(word) else 1.0


def _is_partly_in(text: str, word: str) -> bool:
    letters = max(LEAST, math.ceil(PART * len(word)))
    return len(word) >= LEAST and word.isalpha() and fold_accents(word).casefold()[:letters] in text


def hits_of(  # noqa: PLR0913, PLR0917  # each kind of score
    connection: sqlite3.Connection,
    seqs: Sequence[int],
    matched: Matched,
    fused: Mapping[int, float],
    dense: Mapping[int, float],
    lexical: Mapping[int, float],
    around: Mapping[int, Around] | None = None,
    before: Mapping[int, str] | None = None,
) -> tuple[SearchHit, ...]:
    """Builds hits of chunks, in the order of their seqs."""
    loaded = load_chunks(connection, seqs)
    hits = []
    for seq in seqs:
        chunk, context = loaded[seq]
        surroundings = around.get(seq) if around else None
        hits.append(
            SearchHit(
                chunk=chunk,
                context=context,
                score=fused.get(seq, 0.0),
                dense=dense.get(seq),
                lexical=lexical.get(seq, 0.0),
                told=lexical.get(seq, 0.0) / matched.rarest,
                coverage=matched.share(seq, f"{context.title} {chunk.heading} {chunk.content}"),
                surroundings=None if surroundings is None else surroundings.score,
                surroundings_weight=0.0 if surroundings is None else surroundings.weight,
                matched_terms=tuple(matched.words.get(seq, ())),
                before=before.get(seq, "") if before else "",
                missing=matched.missing.get(seq, 0.0),
            )
        )
    return tuple(hits)

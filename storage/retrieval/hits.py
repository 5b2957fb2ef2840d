"""Found chunks as hits, with which of a query's words stand in each."""

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

PART = 0.6
"""Of a word, the share of its letters that stand for it, the first ones: the rest may be an ending,
or another part of a compound."""

LEAST = 4
"""Letters that stand for a word at least."""

STRADDLING = 0.3
"""What a pair of characters counts of which one says nothing of the subject: it is of no word."""

_ASKED_FOR = frozenset("名称叫类型种时期候")
"""Characters that say what kind of answer is wanted."""

_EMPTY = FUNCTION_CHARACTERS | _ASKED_FOR


@dataclass(frozen=True, slots=True)
class Matched:
    """Which of a query's words stand in each of some chunks.

    Attributes:
        words: Those words, by seq, in the query's order.
        weights: How much each of the query's words tells, its idf; those that say nothing of the
            subject are left out.
        rarest: What a word weighs that stands in one chunk alone.
        missing: Share of the query's names that stand nowhere in its session, 0 to 1; by seq.
    """

    words: Mapping[int, Sequence[str]] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    rarest: float = 1.0
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
        """Looks them up.

        Args:
            index: The lexical index of the chunks' user.
            seqs: The chunks.
            words: The query's terms, and the word that each came from.
            names: Which of the words are names.
            sessions: The chunks of the session of each.
        """
        present = index.terms_in(seqs, words)
        found = {
            seq: list(dict.fromkeys(word for term, word in words.items() if term in terms))
            for seq, terms in present.items()
        }
        weights: dict[str, float] = {}
        for term, weight in index.weights(words).items():  # a word with several terms is the rarest
            weights[words[term]] = max(weight, weights.get(words[term], 0.0))
        telling = {word: each * _telling(word) for word, each in weights.items()}
        weights = {word: each for word, each in telling.items() if each} or weights
        rarest = index.idf(1)
        named = {term: word for term, word in words.items() if word in names}
        if not named:  # most often, and sessions may be long
            return cls(found, weights, rarest)
        count = len(set(named.values()))
        holding = index.terms_in(list({seq for some in sessions.values() for seq in some}), named)
        missing = {
            seq: 1 - len({named[term] for near in some for term in holding[near]}) / count
            for seq, some in sessions.items()
        }
        return cls(found, weights, rarest, missing)

    def share(self, seq: int, text: str) -> float:
        """The share of the query's words that stand in a chunk, whole or in good part, 0 to 1."""
        if not self.weights:  # nothing was asked
            return 0.0
        words, folded = self.words.get(seq, ()), fold_accents(text).casefold()
        told = (
            weight
            for word, weight in self.weights.items()
            if word in words or _is_partly_in(folded, word)
        )
        return sum(told) / (sum(self.weights.values()) or 1.0)


def _telling(word: str) -> float:
    """How much of a word's weight says something of the subject, 0 to 1."""
    if word.lower() in FUNCTION_WORDS or _EMPTY.issuperset(word):
        return 0.0
    return STRADDLING if not _EMPTY.isdisjoint(word) else 1.0


def _is_partly_in(text: str, word: str) -> bool:
    letters = max(LEAST, math.ceil(PART * len(word)))
    return len(word) >= LEAST and word.isalpha() and fold_accents(word).casefold()[:letters] in text


def hits_of(  # noqa: PLR0913, PLR0917  # the scores of a search, kind by kind
    connection: sqlite3.Connection,
    seqs: Sequence[int],
    matched: Matched,
    fused: Mapping[int, float],
    dense: Mapping[int, float],
    lexical: Mapping[int, float],
    around: Mapping[int, Around] | None = None,
    before: Mapping[int, str] | None = None,
) -> tuple[SearchHit, ...]:
    """Chunks as hits, in the order of their seqs.

    Args:
        connection: The record.
        seqs: The chunks.
        matched: The query's words that stand in each.
        fused: Scores, by seq.
        dense: Cosine similarities, by seq.
        lexical: BM25 scores, by seq.
        around: Surroundings, by seq, of those where they count.
        before: What was said before, by seq, of those where anything was.
    """
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

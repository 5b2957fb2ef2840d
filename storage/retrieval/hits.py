"""Found chunks as hits, with which of a query's words stand in each."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from storage.contexts.contexts import load_chunks
from storage.index.lexical import UserIndex
from storage.models import SearchHit
from storage.retrieval.ranking import Around

__all__ = ["Matched", "hits_of"]


@dataclass(frozen=True, slots=True)
class Matched:
    """Which of a query's words stand in each of some chunks.

    Attributes:
        words: Those words, by seq, in the query's order.
        shares: Their share of all the query's words, 0 to 1, each weighed by its idf; by seq.
        missing: Share of the query's names that stand nowhere in its session, 0 to 1; by seq.
    """

    words: Mapping[int, Sequence[str]] = field(default_factory=dict)
    shares: Mapping[int, float] = field(default_factory=dict)
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
        total = sum(weights.values()) or 1.0
        shares = {seq: sum(weights[word] for word in some) / total for seq, some in found.items()}
        named = {term: word for term, word in words.items() if word in names}
        if not named:  # most often, and sessions may be long
            return cls(found, shares)
        count = len(set(named.values()))
        holding = index.terms_in(list({seq for some in sessions.values() for seq in some}), named)
        missing = {
            seq: 1 - len({named[term] for near in some for term in holding[near]}) / count
            for seq, some in sessions.items()
        }
        return cls(found, shares, missing)


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
                coverage=matched.shares.get(seq, 0.0),
                surroundings=None if surroundings is None else surroundings.score,
                surroundings_weight=0.0 if surroundings is None else surroundings.weight,
                matched_terms=tuple(matched.words.get(seq, ())),
                before=before.get(seq, "") if before else "",
                missing=matched.missing.get(seq, 0.0),
            )
        )
    return tuple(hits)

"""The search engine: combines dense and lexical candidates into one fused score.

The union of the best candidates of both kinds is scored exactly by both: cosine similarity from the
stored vectors, BM25 from the lexical index. `storage.retrieval.ranking` fuses the two.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from storage.contexts.contexts import load_chunks, newest_chunks
from storage.contexts.filters import Selection, compile_filter
from storage.database import Database, View
from storage.errors import StorageUnavailableError, VectorIndexError
from storage.index.embedders.base import DEFAULT_FLOOR, Embedder
from storage.index.embedding_models import (
    Embedding,
    Models,
    nearest_first,
    scan,
    similarities,
    undelivered,
    understands,
)
from storage.index.indexer import Indexer
from storage.index.lexical import UserIndex
from storage.index.static_vectors import with_rough_vector
from storage.index.vector_cache import MOST_CACHED, VectorCache
from storage.index.vector_sync import EXACT_LIMIT, generation, is_indexed
from storage.index.vectors import VectorIndex
from storage.models import Identity, IndexStatus, SearchFilter, SearchHit, SearchResult
from storage.retrieval.context_boost import Surroundings
from storage.retrieval.entity_boost import NOBODY, Named, find_named
from storage.retrieval.query_signals import FUNCTION_CHARACTERS, FUNCTION_WORDS, Cues, cues_of
from storage.retrieval.ranking import ALPHA, CANDIDATES, ENOUGH, Around, balance, fuse
from storage.tokenize import fold_accents, terms_of, tokenize

if TYPE_CHECKING:
    from storage.contexts.filters import Seqs


# The share of a word's letters, from its beginning, that count as a match. The rest may be an
# ending, or another part of a compound.
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


@dataclass(slots=True)
class Scores:
    """The scores of chunks, by seq."""

    dense: dict[int, float] = field(default_factory=dict)  # cosine similarities
    lexical: dict[int, float] = field(default_factory=dict)  # BM25
    fused: dict[int, float] = field(default_factory=dict)
    around: dict[int, Around] = field(default_factory=dict)  # the surroundings, if they count
    before: dict[int, str] = field(default_factory=dict)  # the previous turn, if there is one


def hits_of(
    connection: sqlite3.Connection,
    seqs: Sequence[int],
    matched: Matched | None = None,
    scores: Scores | None = None,
) -> tuple[SearchHit, ...]:
    """Builds hits of chunks, in the order of their seqs."""
    matched, scores = matched or Matched(), scores or Scores()
    loaded = load_chunks(connection, seqs)
    hits = []
    for seq in seqs:
        chunk, context = loaded[seq]
        around = scores.around.get(seq)
        lexical = scores.lexical.get(seq, 0.0)
        hits.append(
            SearchHit(
                chunk=chunk,
                context=context,
                score=scores.fused.get(seq, 0.0),
                dense=scores.dense.get(seq),
                lexical=lexical,
                told=lexical / matched.rarest,
                coverage=matched.share(seq, f"{context.title} {chunk.heading} {chunk.content}"),
                surroundings=None if around is None else around.score,
                surroundings_weight=0.0 if around is None else around.weight,
                matched_terms=tuple(matched.words.get(seq, ())),
                before=scores.before.get(seq, ""),
                missing=matched.missing.get(seq, 0.0),
            )
        )
    return tuple(hits)


@dataclass(frozen=True, slots=True)
class Question:
    """A query prepared for both indexes."""

    words: Mapping[str, str]  # its terms, each with its original word
    terms: Sequence[str]  # its terms, for the lexical index
    cues: Cues  # its cues about where the answer is
    vector: Embedding | None  # its embedding; None if only words are searched
    weight: float  # the weight of the dense score
    floor: float  # minimum cosine similarity of a hit without any of the query's words
    status: IndexStatus  # the coverage of semantic search
    embedder: Embedder | None  # the embedder of the vector

    def with_words(self, words: Mapping[str, str]) -> Question:
        """Returns the question with additional terms, each with its original word."""
        if not words:
            return self
        terms = (*self.terms, *(term for term in words if term not in self.terms))
        return replace(self, words={**words, **self.words}, terms=terms)


@dataclass(frozen=True, slots=True)
class SearchEngine:
    """Finds chunks by semantic similarity and by keywords; `alpha` weighs the former, 0 to 1."""

    database: Database
    models: Models
    vectors: VectorIndex
    indexer: Indexer
    alpha: float = ALPHA
    cache: VectorCache = field(default_factory=VectorCache)

    def search(  # noqa: PLR0913  # the filters and weights of a search
        self,
        identity: Identity,
        query: str,
        criteria: SearchFilter,
        top_k: int,
        *,
        alpha: float | None = None,
        surroundings: bool = True,
        now: float | None = None,
    ) -> SearchResult:
        """Returns the best chunks of one identity for a query.

        `alpha` is the weight of the dense score, 0 (keywords only) to 1 (semantic only); by default
        the engine's, lower if the embedder does not understand the query's language. `surroundings`
        says whether the surroundings of chunks count, and `now` when "yesterday" is relative to.
        """
        where = compile_filter(identity, criteria)
        question = self.question(identity, query, alpha=alpha, now=now)
        enough = min(max(ENOUGH, 2 * top_k), CANDIDATES)
        with self.database.read() as connection:
            selection, index = Selection(connection, where), UserIndex(connection, identity.user_id)
            named = NOBODY
            if criteria.cards:
                named = find_named(connection, identity, query, index)
                question = question.with_words(named.words)
            found = _Candidates(
                connection=connection, index=index, selection=selection, question=question
            )
            # Words first: they show cheaply how few chunks match the filter.
            found.lexical = index.matches(question.terms, selection, CANDIDATES, enough=enough)
            if question.vector is not None:
                found.dense = self.nearest(connection, identity, question.vector, selection, enough)
            found.score(())
            beside = Surroundings(connection, index, selection, found.fused if surroundings else ())
            if surroundings:
                found.look_around(beside, named)
            best = sorted(found.fused, key=lambda seq: (-found.fused[seq], seq))[:top_k]
            sessions = {seq: beside.session(seq) for seq in best}
            matched = Matched.of(index, best, question.words, question.cues.names, sessions)
            found.before = beside.before(best)
            hits = hits_of(connection, best, matched, found)
        embedder = question.embedder
        if question.vector is None or embedder is None:
            return SearchResult(hits, "lexical", question.status)
        # Vectors of texts that the embedder does not understand are all alike.
        readable = tuple(
            hit
            for hit in hits
            if hit.lexical > 0
            or hit.surroundings is not None
            or understands(embedder, hit.chunk.content)
        )
        return SearchResult(readable, "hybrid", question.status)

    def reads(self, query: str) -> bool:
        """Returns whether semantic scores count and the embedder understands the query."""
        try:
            return self.alpha > 0 and understands(self.models.current()[1], query)
        except StorageUnavailableError:
            return False

    def newest(self, identity: Identity, criteria: SearchFilter, limit: int) -> SearchResult:
        """Returns the chunks of an identity's newest contexts that match a filter."""
        with self.database.read() as connection:
            seqs = newest_chunks(connection, compile_filter(identity, criteria), limit)
            hits = hits_of(connection, seqs)
        return SearchResult(hits, "listing", self.status(identity))

    def status(self, identity: Identity) -> IndexStatus:
        """Returns how much of the user's data semantic search covers."""
        return self.models.status(identity.user_id, self.indexer.problem)

    def question(
        self,
        identity: Identity,
        query: str,
        *,
        alpha: float | None = None,
        now: float | None = None,
    ) -> Question:
        """Prepares a query of one identity for both indexes."""
        status = self.status(identity)
        vector, weight, floor, embedder = None, 0.0, DEFAULT_FLOOR, None
        if status.embedded or status.rough:
            try:
                model, embedder = self.models.current()
                weight, floor = balance(query, embedder, self.alpha, alpha)
                if weight:
                    vector = Embedding.of_query(model, embedder, query)
                    if status.rough:
                        vector = with_rough_vector(vector, query)
            except StorageUnavailableError as error:  # keyword search still works
                weight, status = 0.0, replace(status, problem=error.message)
        return Question(
            words=terms_of(query),
            terms=tokenize(query),
            cues=cues_of(query, time.time() if now is None else now),
            vector=vector,
            weight=weight,
            floor=floor,
            status=status,
            embedder=embedder,
        )

    def nearest(
        self,
        connection: sqlite3.Connection,
        identity: Identity,
        vector: Embedding,
        selection: Selection,
        enough: int = CANDIDATES,
    ) -> dict[int, float]:
        """Returns the nearest chunks of a selection, nearest first: seq → cosine similarity.

        If the selection makes `CANDIDATES` costly, `enough` of them suffice.
        """
        user_id = identity.user_id
        embedded = self.status(identity).embedded
        if embedded > EXACT_LIMIT and is_indexed(connection, vector.model, user_id):
            ranked = partial(self._neighbours, connection, user_id, vector, embedded)
            near = selection.first(ranked, CANDIDATES, enough)
            if near is not None:
                waiting = selection.keep(undelivered(connection, vector, user_id))
                found = similarities(connection, vector, [*near.tolist(), *waiting.tolist()])
                if len(found) >= enough:
                    return nearest_first(found, CANDIDATES)
        if selection.narrows:
            found = similarities(connection, vector, selection.members.tolist())
        else:
            found = scan(connection, vector, user_id)
        return nearest_first(found, CANDIDATES)

    def alike(
        self, view: View, vector: Embedding, selection: Selection, least: float
    ) -> dict[int, float]:
        """Returns chunks of a selection that are at least this similar, nearest first."""
        if self.status(view.identity).embedded > MOST_CACHED:
            found = self.nearest(view.connection, view.identity, vector, selection, 1)
        else:
            near = selection.keep(self.cache.near(view, vector, least))
            found = similarities(view.connection, vector, near.tolist())
        alike = {seq: cosine for seq, cosine in found.items() if cosine >= least}
        return nearest_first(alike, CANDIDATES)

    def _neighbours(
        self,
        connection: sqlite3.Connection,
        user_id: str,
        vector: Embedding,
        embedded: int,
        count: int,
    ) -> Seqs:
        """Queries the vector index for at most `count` chunks; none while it is damaged."""
        import numpy as np

        self.indexer.consulted()
        try:
            self.vectors.follow(generation(connection), at_once=False)
            near = self.vectors.nearest(vector.model, user_id, vector.vector, count)
        except VectorIndexError:
            near = []
        if len(near) < min(count, embedded):  # damaged or outdated
            self.indexer.check()
        return np.array(near, dtype=np.int64)


@dataclass(slots=True, kw_only=True)
class _Candidates(Scores):
    """The candidates of one search, in its transaction."""

    connection: sqlite3.Connection
    index: UserIndex
    selection: Selection
    question: Question

    def score(self, more: Collection[int]) -> None:
        """Adds more candidates, and the scores of either kind that are still missing."""
        question = self.question
        also = [*more, *(self.dense.keys() - self.lexical.keys())]
        if also:
            self.lexical |= self.index.matches(question.terms, self.selection, 0, also=also)
        if question.vector is not None:
            missing = [*more, *(self.lexical.keys() - self.dense.keys())]
            self.dense |= similarities(self.connection, question.vector, missing)
        self.fused |= fuse(self.dense, self.lexical, question.weight, question.floor)

    def look_around(self, surroundings: Surroundings, named: Named) -> None:
        """Adds the surroundings to the scores, and the chunks that join because of them."""
        joined = [*surroundings.joined, *self.selection.keep(named.seqs).tolist()]
        if joined:
            self.score(joined)
        terms = self.question.terms if self.question.weight < 1 else ()  # 1 means semantic only
        self.around = surroundings.around(terms, self.question.cues, self.fused)
        self.around |= named.around(self.fused, set(joined))
        self.fused |= {
            seq: fits.blend(self.fused.get(seq, 0.0)) for seq, fits in self.around.items()
        }

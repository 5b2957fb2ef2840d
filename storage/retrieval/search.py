"""The one retrieval engine: dense and lexical candidates, true scores of both, one fused score.

The union of the best candidates of both kinds is scored truly by both: cosine similarity from the
stored vectors, BM25 from the lexical index. `storage.retrieval.ranking` makes one score of them.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from storage.contexts.contexts import newest_chunks
from storage.contexts.filters import Selection, compile_filter
from storage.database import Database
from storage.errors import StorageUnavailableError, VectorIndexError
from storage.index.embedders.base import DEFAULT_FLOOR, understands
from storage.index.embedding_models import (
    Embedding,
    Models,
    nearest_first,
    scan,
    similarities,
    undelivered,
)
from storage.index.indexer import Indexer
from storage.index.lexical import UserIndex
from storage.index.vector_sync import generation
from storage.index.vectors import VectorIndex
from storage.models import Identity, IndexStatus, SearchFilter, SearchHit, SearchResult
from storage.retrieval.cues import Cues, cues_of
from storage.retrieval.hits import Matched, hits_of
from storage.retrieval.named import NOBODY, Named, find_named
from storage.retrieval.ranking import (
    ALPHA,
    CANDIDATES,
    ENOUGH,
    Around,
    balance,
    fuse,
)
from storage.retrieval.surroundings import Surroundings
from storage.tokenize import terms_of, tokenize

if TYPE_CHECKING:
    from storage.contexts.filters import Seqs

EXACT_LIMIT = 2000
"""Up to this many vectors are compared one by one: exact, and faster than asking the index."""


@dataclass(frozen=True, slots=True)
class Question:
    """A query as it is put to the indexes.

    Attributes:
        words: Each of its terms with the word that it came from.
        terms: Its terms, for the lexical index.
        cues: Where it says that its answer stands.
        vector: Its meaning; None where that cannot help, and words alone decide.
        weight: Of the dense score.
        floor: Cosine below which a chunk without any of the query's words is no hit.
        status: How complete an answer can be.
    """

    words: Mapping[str, str]
    terms: Sequence[str]
    cues: Cues
    vector: Embedding | None
    weight: float
    floor: float
    status: IndexStatus

    def with_words(self, words: Mapping[str, str]) -> Question:
        """The question with more terms, each with the word that stands for it."""
        if not words:
            return self
        terms = (*self.terms, *(term for term in words if term not in self.terms))
        return replace(self, words={**words, **self.words}, terms=terms)


class SearchEngine:
    """Finds chunks by meaning and by words.

    Args:
        database: The record, with the lexical index.
        models: Makes the query's vector.
        vectors: The vector index.
        indexer: Tells the coverage, and repairs the vector index.
        alpha: Weight of the dense score, 0 to 1.
    """

    def __init__(
        self,
        database: Database,
        models: Models,
        vectors: VectorIndex,
        indexer: Indexer,
        *,
        alpha: float = ALPHA,
    ) -> None:
        self._database = database
        self._models = models
        self._vectors = vectors
        self._indexer = indexer
        self._alpha = alpha

    def search(  # noqa: PLR0913  # what narrows and what weighs a search
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
        """The best chunks of one identity for a query.

        Args:
            identity: Whose contexts.
            query: What to look for.
            criteria: What narrows the search; entities folded.
            top_k: How many hits at most.
            alpha: Weight of the dense score, 0 (words only) to 1 (meaning only); by default the
                engine's, lower where the embedder does not understand the query's language.
            surroundings: Whether what stands around a chunk counts: see
                `storage.retrieval.surroundings`.
            now: When it is asked, in Unix seconds, for "yesterday"; by default now.
        """
        where = compile_filter(identity, criteria)
        question = self.question(identity, query, alpha=alpha, now=now)
        vector = question.vector
        enough = min(max(ENOUGH, 2 * top_k), CANDIDATES)
        with self._database.read() as connection:
            selection, index = Selection(connection, where), UserIndex(connection, identity.user_id)
            named = NOBODY
            if criteria.cards:
                named = find_named(connection, identity, query, index)
                question = question.with_words(named.words)
            # Words first: they tell cheaply how few a filter lets through.
            lexical = index.matches(question.terms, selection, CANDIDATES, enough=enough)
            dense: dict[int, float] = {}
            if vector is not None:
                dense = self.nearest(connection, identity, vector, selection, enough)
                lexical |= index.matches(question.terms, selection, 0, also=dense)
                dense |= similarities(connection, vector, lexical.keys() - dense.keys())
            around: dict[int, Around] = {}
            fused = fuse(dense, lexical, question.weight, question.floor)
            beside = Surroundings(connection, index, selection, fused if surroundings else ())
            if surroundings:
                around = _look_around(
                    connection, index, question, beside, selection, dense, lexical, fused, named
                )
            best = sorted(fused, key=lambda seq: (-fused[seq], seq))[:top_k]
            sessions = {seq: beside.session(seq) for seq in best}
            matched = Matched.of(index, best, question.words, question.cues.names, sessions)
            before = beside.before(best)
            hits = hits_of(connection, best, matched, fused, dense, lexical, around, before)
        if vector is None:
            return SearchResult(hits, "lexical", question.status)
        embedder = self._models.current()[1]
        readable = tuple(
            hit for hit in hits if _is_known(hit) or understands(embedder, hit.chunk.content)
        )
        return SearchResult(readable, "hybrid", question.status)

    def reads(self, query: str) -> bool:
        """Whether meaning counts, and an embedder understands the query's language."""
        try:
            return self._alpha > 0 and understands(self._models.current()[1], query)
        except StorageUnavailableError:
            return False

    def newest(self, identity: Identity, criteria: SearchFilter, limit: int) -> SearchResult:
        """The chunks of the newest contexts of one identity that fit a filter."""
        with self._database.read() as connection:
            seqs = newest_chunks(connection, compile_filter(identity, criteria), limit)
            hits = hits_of(connection, seqs, Matched(), {}, {}, {})
        return SearchResult(hits, "listing", self._indexer.status(identity))

    def question(
        self,
        identity: Identity,
        query: str,
        *,
        alpha: float | None = None,
        now: float | None = None,
    ) -> Question:
        """A query of one identity, read for both indexes.

        Args:
            identity: Whose contexts it is asked of.
            query: What to look for.
            alpha: As in `search`.
            now: As in `search`.
        """
        status = self._indexer.status(identity)
        vector, weight, floor = None, 0.0, DEFAULT_FLOOR
        if status.embedded or status.rough:
            try:
                model, embedder = self._models.current()
                weight, floor = balance(query, embedder, self._alpha, alpha)
                if weight:
                    vector = Embedding.of_query(model, embedder, query)
                    if status.rough:
                        vector = self._indexer.roughly(vector, query)
            except StorageUnavailableError as error:  # words still find
                weight, status = 0.0, replace(status, problem=error.message)
        return Question(
            words=terms_of(query),
            terms=tokenize(query),
            cues=cues_of(query, time.time() if now is None else now),
            vector=vector,
            weight=weight,
            floor=floor,
            status=status,
        )

    def nearest(
        self,
        connection: sqlite3.Connection,
        identity: Identity,
        vector: Embedding,
        selection: Selection,
        enough: int = CANDIDATES,
    ) -> dict[int, float]:
        """The nearest chunks of a selection, nearest first: seq → cosine similarity.

        Args:
            connection: The record, in a transaction.
            identity: Whose chunks.
            vector: What they are to be near.
            selection: Which of them.
            enough: How many do, where a filter makes `CANDIDATES` costly.
        """
        user_id = identity.user_id
        embedded = self._indexer.status(identity).embedded
        if embedded > EXACT_LIMIT:
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

    def _neighbours(
        self,
        connection: sqlite3.Connection,
        user_id: str,
        vector: Embedding,
        embedded: int,
        count: int,
    ) -> Seqs:
        """What the vector index finds nearest, at most so many; none while it is damaged."""
        import numpy as np

        self._indexer.consulted()
        try:
            self._vectors.follow(generation(connection), at_once=False)
            near = self._vectors.nearest(vector.model, user_id, vector.vector, count)
        except VectorIndexError:
            near = []
        if len(near) < min(count, embedded):  # it is damaged, or behind the record
            self._indexer.check()
        return np.array(near, dtype=np.int64)


def _is_known(hit: SearchHit) -> bool:
    """Whether more than its vector speaks for a hit: all that is unreadable has vectors alike."""
    return hit.lexical > 0 or hit.surroundings is not None


def _look_around(  # noqa: PLR0913, PLR0917  # what a search knows so far
    connection: sqlite3.Connection,
    index: UserIndex,
    question: Question,
    surroundings: Surroundings,
    selection: Selection,
    dense: dict[int, float],
    lexical: dict[int, float],
    fused: dict[int, float],
    named: Named,
) -> dict[int, Around]:
    """Takes what stands around the chunks into their scores, and in what joins them for it.

    Returns:
        The surroundings of those that have any.
    """
    joined = [*surroundings.joined, *selection.keep(named.seqs).tolist()]
    if joined:
        lexical |= index.matches(question.terms, selection, 0, also=joined)
        if question.vector is not None:
            dense |= similarities(connection, question.vector, joined)
        fused |= fuse(dense, lexical, question.weight, question.floor)
    terms = question.terms if question.weight < 1 else ()  # 1 asks for meaning only
    around = surroundings.around(terms, question.cues, fused)
    around |= named.around(fused, set(joined))
    fused |= {seq: fits.blend(fused.get(seq, 0.0)) for seq, fits in around.items()}
    return around

"""The search engine: combines dense and lexical candidates into one fused score.

The union of the best candidates of both kinds is scored exactly by both: cosine similarity from the
stored vectors, BM25 from the lexical index. `storage.retrieval.ranking` fuses the two.
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

# Up to this many vectors are compared one by one: exact, and faster than the vector index.
EXACT_LIMIT = 2000


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

    def with_words(self, words: Mapping[str, str]) -> Question:
        """Returns the question with additional terms, each with its original word."""
        if not words:
            return self
        terms = (*self.terms, *(term for term in words if term not in self.terms))
        return replace(self, words={**words, **self.words}, terms=terms)


class SearchEngine:
    """Finds chunks by semantic similarity and by keywords.

    Args:
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
        vector = question.vector
        enough = min(max(ENOUGH, 2 * top_k), CANDIDATES)
        with self._database.read() as connection:
            selection, index = Selection(connection, where), UserIndex(connection, identity.user_id)
            named = NOBODY
            if criteria.cards:
                named = find_named(connection, identity, query, index)
                question = question.with_words(named.words)
            # Words first: they show cheaply how few chunks match the filter.
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
        """Returns whether semantic scores count and the embedder understands the query."""
        try:
            return self._alpha > 0 and understands(self._models.current()[1], query)
        except StorageUnavailableError:
            return False

    def newest(self, identity: Identity, criteria: SearchFilter, limit: int) -> SearchResult:
        """Returns the chunks of an identity's newest contexts that match a filter."""
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
        """Prepares a query of one identity for both indexes."""
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
        """Queries the vector index for at most `count` chunks; none while it is damaged."""
        import numpy as np

        self._indexer.consulted()
        try:
            self._vectors.follow(generation(connection), at_once=False)
            near = self._vectors.nearest(vector.model, user_id, vector.vector, count)
        except VectorIndexError:
            near = []
        if len(near) < min(count, embedded):  # damaged or outdated
            self._indexer.check()
        return np.array(near, dtype=np.int64)


def _is_known(hit: SearchHit) -> bool:
    """Returns whether a hit has more than a vector; vectors of unreadable texts are all alike."""
    return hit.lexical > 0 or hit.surroundings is not None


def _look_around(  # noqa: PLR0913, PLR0917  # the state of a search
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
    """Adds the surroundings to the scores, and the chunks that join because of them.

    Returns:
        The surroundings of the chunks that have any.
    """
    joined = [*surroundings.joined, *selection.keep(named.seqs).tolist()]
    if joined:
        lexical |= index.matches(question.terms, selection, 0, also=joined)
        if question.vector is not None:
            dense |= similarities(connection, question.vector, joined)
        fused |= fuse(dense, lexical, question.weight, question.floor)
    terms = question.terms if question.weight < 1 else ()  # 1 means semantic only
    around = surroundings.around(terms, question.cues, fused)
    around |= named.around(fused, set(joined))
    fused |= {seq: fits.blend(fused.get(seq, 0.0)) for seq, fits in around.items()}
    return around

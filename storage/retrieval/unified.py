"""One query over memory and knowledge: cache, routing, parallel searches, one order."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from storage.database import Database
from storage.index.bounded import BoundedDict
from storage.memory.entries import Entries
from storage.models import (
    Entry,
    Identity,
    IndexStatus,
    MemoryLayer,
    SearchFilter,
    SearchHit,
    SearchResult,
)
from storage.retrieval.bm25 import REMEMBERED, Recent
from storage.retrieval.confidence import Confidence, by_score, least_shown
from storage.retrieval.query_signals import asks_for_past, completed, dependence
from storage.retrieval.ranking import (
    UnifiedHit,
    candidates_of,
    distinct,
    rerank,
    with_entries,
    wording,
)
from storage.retrieval.routing import MEMORY, Route, Scope, UnifiedQuery, origin_of, route
from storage.retrieval.search import SearchEngine

MOST_CACHED = 256
CACHED_SECONDS = 300.0  # seconds for which an answer is cached
SPARE = 3  # candidates per wanted hit, because some are duplicates
LEAST_CANDIDATES = 20
FOLLOW_UP_SECONDS = 600.0  # seconds after a query in which another may be its follow-up
LATEST = 5  # entries that answer a question about the latest events
EARLIER = 20  # the latest entries to check for earlier queries
WORKERS = 4  # parallel searches of layer 1; each takes less than a millisecond
DEPENDS = 0.5  # minimum probability that a query depends on an earlier one for it to be completed
# Returns the filter with the stored spellings of its names, and the unknown names.
Resolve = Callable[[SearchFilter], tuple[SearchFilter, tuple[str, ...]]]
T = TypeVar("T")


class AnswerCache(Generic[T]):
    """The latest answers of one library, reused while nothing has changed.

    An answer is stored under everything it depends on, including the version of the user's library.
    So a change needs no invalidation: the old key is never requested again. A query that differs
    only in case, spaces, punctuation and stop words ("the", "is") gets the same answer.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turn = threading.Lock()
        self._answers: BoundedDict[Hashable, tuple[T, str, float]] = BoundedDict(MOST_CACHED)

    def find(self, key: Hashable, query: str) -> tuple[T, str] | None:
        """Returns the cached answer to a query or another wording of it, and that query."""
        oldest = self._clock() - CACHED_SECONDS
        with self._turn:
            while self._answers and next(iter(self._answers.values()))[2] < oldest:
                self._answers.popitem(last=False)
            found = self._answers.get((key, wording(query)))
        return found and found[:2]

    def add(self, key: Hashable, query: str, result: T) -> None:
        """Stores an answer for `CACHED_SECONDS`."""
        with self._turn:
            self._answers[key, wording(query)] = result, query, self._clock()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnifiedResult:
    """The answer to a query, and how it was found."""

    hits: tuple[UnifiedHit, ...]  # best first, without duplicates; empty if nothing answers
    scope: Scope  # the scope that was searched in the end
    why: str  # the reason, in a few words
    query: str  # the query as searched, completed if it was a follow-up
    mode: str  # "hybrid", or "lexical" while there are no vectors
    status: IndexStatus  # how complete the search was
    unknown_names: tuple[str, ...] = ()  # entities of the filter that resemble no stored name
    cached: str = ""  # the earlier query whose cached answer this is; empty if it was searched now
    nearest: tuple[UnifiedHit, ...] = ()  # the nearest hits if none answers


@dataclass(frozen=True, slots=True)
class _Request:
    identity: Identity
    query: UnifiedQuery
    resolve: Resolve


class UnifiedSearch:
    """Answers queries of all identities; its methods block."""

    def __init__(
        self,
        database: Database,
        engine: SearchEngine,
        confidence: Confidence,
        entries: Entries,
        recent: Recent,
    ) -> None:
        self._database = database
        self._engine = engine
        self._confidence = confidence
        self._entries = entries
        self._recent = recent
        self._cache: AnswerCache[UnifiedResult] = AnswerCache()
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="toolcrib-recent")

    def search(self, identity: Identity, query: UnifiedQuery, resolve: Resolve) -> UnifiedResult:
        """Answers a query; one that may be a follow-up also with the query before it."""
        asked = _Request(identity, query, resolve)
        alone = self._answer(asked)
        stored = [hit for hit in (*alone.hits, *alone.nearest) if hit.passage is not None]
        share = dependence(query.text, max((hit.score for hit in stored), default=0.0))
        may_depend = share >= DEPENDS and route(query).stored is not None
        text = completed(query.text, self._earlier(identity, query) if may_depend else ())
        if text == query.text:
            return alone
        joined = self._answer(replace(asked, query=replace(query, text=text)))
        return _join(alone, joined, share, query.top_k)

    def _answer(self, request: _Request) -> UnifiedResult:
        text = request.query.text
        chosen = route(request.query)
        key = self._key(request, chosen)
        cached = self._cache.find(key, text)
        if cached is not None:
            result, earlier = cached
            return replace(result, query=text, cached=earlier)
        result = self._search(request, chosen)
        if chosen.is_guess and not result.hits:
            result = self._search(request, chosen.widened(request.query.criteria))
        if result.status.complete and not result.status.problem:
            self._cache.add(key, text, result)
        return result

    def close(self) -> None:
        """Stops its threads."""
        self._workers.shutdown()

    def _earlier(self, identity: Identity, query: UnifiedQuery) -> list[str]:
        if not query.session_id:
            return []
        since = time.time() - FOLLOW_UP_SECONDS
        latest = self._entries.recent(identity, query.session_id, EARLIER)
        earlier = (_query_of(entry) for entry in reversed(latest) if entry.time >= since)
        return [each for each in earlier if each]

    def _key(self, request: _Request, chosen: Route) -> Hashable:
        """Returns everything that an answer depends on besides the query's wording."""
        identity, query = request.identity, request.query
        session_id = self._session_of(request, chosen)
        with self._database.read() as connection:
            version = connection.execute(
                "SELECT sum(version) FROM versions WHERE user_id IN (?, '')", (identity.user_id,)
            ).fetchone()[0]
        return (
            identity,
            chosen,
            query.top_k,
            query.criteria,
            query.source and query.source.name,
            tuple((source.name, source.criteria) for source in query.sources),
            session_id,
            version,
            self._recent.state(identity, session_id),
            time.strftime("%Y-%m-%d", time.gmtime()),
        )

    def _session_of(self, request: _Request, chosen: Route) -> str:
        """Returns the session whose entries are searched; empty if there is none."""
        identity, own = request.identity, request.query.session_id
        if not chosen.previous:
            return own
        latest = (each.id for each in self._entries.sessions(identity, EARLIER) if each.id != own)
        return next((each for each in latest if self._recent.latest(identity, each)), "")

    def _summary_of(self, request: _Request, session_id: str) -> list[UnifiedHit]:
        if not session_id:
            return []
        layers = (MemoryLayer.SUMMARY,)
        place = replace(request.query.criteria, raw_id=session_id, memory_layers=layers)
        found = self._engine.newest(request.identity, place, 1)
        return [replace(_of_passage(hit, request.query), score=1.0) for hit in found.hits]

    def _search(self, request: _Request, chosen: Route) -> UnifiedResult:
        identity, query = request.identity, request.query
        count = max(SPARE * query.top_k, LEAST_CANDIDATES)
        session_id = self._session_of(request, chosen)
        recent = None
        if chosen.recent and session_id:
            recent = self._workers.submit(self._entries_for, request, chosen, session_id, count)
        unknown: tuple[str, ...] = ()
        if chosen.stored is None:
            result = SearchResult((), "lexical", self._engine.status(identity))
        else:
            criteria, unknown = request.resolve(chosen.stored)
            result = self._engine.search(identity, query.text, criteria, count)
            if not asks_for_past(query.text):
                standing = [hit for hit in result.hits if not hit.is_former]
                result = replace(result, hits=tuple(standing))
        entries = recent.result() if recent else []
        asked = entries if chosen.asks_recent else []
        hits, nearest = self._judge(query.text, self._merge(query, result.hits, asked))
        if chosen.latest and chosen.previous:
            hits = [*self._summary_of(request, session_id), *hits]
        if entries and not asked and not hits:  # the model has just seen these, so they come last
            hits = self._rate_entries(query.text, self._merge(query, (), entries))
        return UnifiedResult(
            hits=tuple(hits[: query.top_k]),
            nearest=() if hits else nearest,
            scope=chosen.scope,
            why=chosen.why,
            query=query.text,
            mode=result.mode,
            status=result.status,
            unknown_names=unknown,
        )

    def _entries_for(
        self, request: _Request, chosen: Route, session_id: str, count: int
    ) -> list[tuple[Entry, float]]:
        """Returns the matching entries of layer 1, within the requested time."""
        query = request.query
        if chosen.latest:
            found, count = self._recent.latest(request.identity, session_id), LATEST
        else:
            found = self._recent.search(request.identity, session_id, query.text, REMEMBERED)
        found = _by_outcome(found, chosen)[:count]
        times = query.criteria.time_range
        if times is None:
            return found
        return [
            (entry, share)
            for entry, share in found
            if (times.start is None or entry.time >= times.start)
            and (times.end is None or entry.time <= times.end)
        ]

    def _merge(
        self,
        query: UnifiedQuery,
        passages: Sequence[SearchHit],
        entries: Sequence[tuple[Entry, float]],
    ) -> list[UnifiedHit]:
        hits = [
            *(_of_passage(passage, query) for passage in passages),
            *(
                UnifiedHit(
                    origin=MEMORY, layer=MemoryLayer.RECENT, score=share, lexical=share, entry=entry
                )
                for entry, share in entries
            ),
        ]
        candidates = candidates_of(
            passages,
            [hit.origin for hit in hits[: len(passages)]],
            by_meaning=self._engine.reads(query.text),
        )
        among = with_entries(query.text, passages, candidates, entries)
        ordered = [replace(hits[index], score=score) for index, score in rerank(among)]
        return distinct(ordered, query.top_k, self._mentioned_ids(ordered) if entries else ())

    def _judge(
        self, question: str, hits: Sequence[UnifiedHit]
    ) -> tuple[list[UnifiedHit], tuple[UnifiedHit, ...]]:
        """Returns the hits that answer, scored by probability, or else the nearest passages.

        Entries keep their scores, because they were asked for.
        """
        passages = [hit.passage for hit in hits if hit.passage]
        stored = [hit for hit in hits if hit.passage]
        answers, nearest = self._confidence.divide(question, stored, passages)
        return by_score([*answers, *(hit for hit in hits if hit.entry)]), nearest

    def _rate_entries(self, question: str, hits: Sequence[UnifiedHit]) -> list[UnifiedHit]:
        texts = {hit.entry.text: hit.lexical for hit in hits if hit.entry is not None}
        likely = dict(zip(texts, self._confidence.rate_texts(question, texts), strict=True))
        rated = by_score([replace(hit, score=likely[hit.entry.text]) for hit in hits if hit.entry])
        least = least_shown(likely.values())
        return [hit for hit in rated if hit.score >= least]

    def _mentioned_ids(self, hits: Sequence[UnifiedHit]) -> list[frozenset[str]]:
        seqs = [hit.entry.seq for hit in hits if hit.entry is not None]
        mentioned: dict[int, set[str]] = {}
        with self._database.read() as connection:
            for seq, context_id in connection.execute(
                "SELECT e.entry_seq, x.id FROM entry_contexts e"
                " JOIN contexts x ON x.seq = e.context_seq"
                " WHERE e.entry_seq IN (SELECT value FROM json_each(?))",
                (json.dumps(seqs),),
            ):
                mentioned.setdefault(seq, set()).add(context_id)
        return [frozenset(mentioned.get(hit.entry.seq, ()) if hit.entry else ()) for hit in hits]


def _join(alone: UnifiedResult, joined: UnifiedResult, share: float, limit: int) -> UnifiedResult:
    """Adds the hits of the completed query, as far as the query depends on an earlier one.

    Whatever answers the query alone keeps its probability; the completed one can only add to it.
    """
    found = {_key_of(hit): hit for hit in alone.hits}
    for hit in joined.hits:
        own = found.get(_key_of(hit), replace(hit, score=0.0))
        found[_key_of(hit)] = replace(own, score=1 - (1 - own.score) * (1 - share * hit.score))
    least = least_shown(hit.score for hit in found.values())
    hits = distinct([hit for hit in by_score(found.values()) if hit.score >= least], limit)
    if not joined.hits or not hits:
        return alone
    cached = joined.cached if alone.cached else ""
    return replace(alone, hits=tuple(hits), nearest=(), query=joined.query, cached=cached)


def _key_of(hit: UnifiedHit) -> Hashable:
    return hit.passage.chunk if hit.passage else hit.entry and hit.entry.seq


def _by_outcome(found: Sequence[tuple[Entry, float]], chosen: Route) -> list[tuple[Entry, float]]:
    """Keeps failed calls only if they are asked for, or if memory is and nothing else matches."""
    failed = [(entry, share) for entry, share in found if entry.outcome != "ok"]
    if chosen.failures and failed:
        return failed
    others = [(entry, share) for entry, share in found if entry.outcome == "ok"]
    return others or (failed if chosen.asks_recent else [])


def _of_passage(passage: SearchHit, query: UnifiedQuery) -> UnifiedHit:
    named = query.source.name if query.source is not None else ""
    return UnifiedHit(
        origin=named or origin_of(passage.context, query.sources),
        layer=passage.context.memory_layer,
        score=passage.score,
        lexical=passage.lexical,
        passage=passage,
    )


def _query_of(entry: Entry) -> str:
    """Returns the query of a recorded call, or the text of a message; empty for others."""
    if entry.kind == "message":
        return entry.said
    query = entry.arguments.get("query")
    return query if entry.action == "query" and isinstance(query, str) else ""

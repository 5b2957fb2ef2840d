"""One question over memory and knowledge: cache, routing, both searches at once, one order."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from storage.database import Database
from storage.index.indexer import Indexer
from storage.index.lexical import UserIndex
from storage.memory.entries import Entries
from storage.memory.models import Entry, MemoryLayer
from storage.memory.recent import Recent
from storage.models import Identity, SearchFilter, SearchHit, SearchResult
from storage.retrieval.cache import AnswerCache
from storage.retrieval.inquiry import Finding, Findings, Inquiry
from storage.retrieval.query_text import QueryText, leans, rewrite
from storage.retrieval.ranking import candidates_of, distinct, rerank, with_entries
from storage.retrieval.routing import Route, route
from storage.retrieval.search import SearchEngine
from storage.retrieval.sources import MEMORY, origin_of

__all__ = ["Resolve", "UnifiedSearch"]

SPARE = 3
"""Candidates for each finding that is wanted: some say the same."""

LEAST_CANDIDATES = 20

FOLLOW_UP_SECONDS = 600.0
"""How long after a query another one may lean on it."""

EARLIER = 20
"""Latest entries among which earlier queries are looked for."""

WORKERS = 4
"""Searches of layer 1 at a time: each takes less than a millisecond."""

Resolve = Callable[[SearchFilter], tuple[SearchFilter, tuple[str, ...]]]
"""Gives the filter with the stored spellings of its names, and the names that are unknown."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question on its way: whose it is, and as it is put to the index."""

    identity: Identity
    inquiry: Inquiry
    resolve: Resolve


class UnifiedSearch:
    """Answers questions of every identity; its calls block.

    Args:
        database: The record.
        engine: Finds what is stored.
        indexer: Tells the coverage.
        entries: What was called and said.
        recent: Finds among the latest of that.
    """

    def __init__(
        self,
        database: Database,
        engine: SearchEngine,
        indexer: Indexer,
        entries: Entries,
        recent: Recent,
    ) -> None:
        self._database = database
        self._engine = engine
        self._indexer = indexer
        self._entries = entries
        self._recent = recent
        self._cache = AnswerCache()
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="toolcrib-recent")

    def ask(self, identity: Identity, inquiry: Inquiry, resolve: Resolve) -> Findings:
        """What is found for a question.

        Args:
            identity: Whose question.
            inquiry: The question.
            resolve: Resolves the names of its filter.
        """
        query = self._in_context(identity, inquiry)
        asked = _Asked(identity, replace(inquiry, query=query), resolve)
        way = route(asked.inquiry)
        key, text = self._key(asked, way), QueryText(query)
        known = self._cache.find(key, text, lambda terms: self._finds_nothing(asked, terms))
        if known is not None:
            findings, earlier = known
            return replace(findings, asked=query, cached=earlier)
        findings = self._search(asked, way)
        if way.is_guess and not findings.found:
            findings = self._search(asked, way.widened(inquiry.wanted))
        if findings.status.complete and not findings.status.problem:
            self._cache.keep(key, text, findings)
        return findings

    def close(self) -> None:
        """Ends its threads."""
        self._workers.shutdown()

    def _in_context(self, identity: Identity, inquiry: Inquiry) -> str:
        """The query, after the earlier one that it leans on."""
        if not inquiry.session_id or not leans(inquiry.query):
            return inquiry.query
        since = time.time() - FOLLOW_UP_SECONDS
        latest = self._entries.recent(identity, inquiry.session_id, EARLIER)
        asked = [_asked_by(entry) for entry in reversed(latest) if entry.time >= since]
        return rewrite(inquiry.query, [query for query in asked if query])

    def _key(self, asked: _Asked, way: Route) -> Hashable:
        """All that an answer depends on beside the words of the query."""
        identity, inquiry = asked.identity, asked.inquiry
        with self._database.read() as connection:
            version = connection.execute(
                "SELECT sum(version) FROM versions WHERE user_id IN (?, '')", (identity.user_id,)
            ).fetchone()[0]
        return (
            identity,
            way,
            inquiry.top_k,
            inquiry.wanted,
            inquiry.source and inquiry.source.name,
            tuple((source.name, source.wanted) for source in inquiry.sources),
            inquiry.session_id,
            version,
            self._recent.state(identity, inquiry.session_id),
            time.strftime("%Y-%m-%d", time.gmtime()),
        )

    def _finds_nothing(self, asked: _Asked, terms: Mapping[str, str]) -> bool:
        """Whether terms stand in nothing that the user could find, and words alone decide.

        An entry's score depends on all words of a query, so no entry may have any.
        """
        identity, inquiry = asked.identity, asked.inquiry
        if self._engine.reads(inquiry.query):
            return False
        words = " ".join((inquiry.query, *terms.values()))
        if self._recent.search(identity, inquiry.session_id, words, 1):
            return False
        with self._database.read() as connection:
            index = UserIndex(connection, identity.user_id)
            return next(index.holders(list(terms)), None) is None

    def _search(self, asked: _Asked, way: Route) -> Findings:
        identity, inquiry = asked.identity, asked.inquiry
        count = max(SPARE * inquiry.top_k, LEAST_CANDIDATES)
        recent = self._workers.submit(self._entries_for, asked, count) if way.recent else None
        unknown: tuple[str, ...] = ()
        if way.stored is None:
            result = SearchResult((), "lexical", self._indexer.status(identity))
        else:
            wanted, unknown = asked.resolve(way.stored)
            result = self._engine.search(identity, inquiry.query, wanted, count)
        entries = recent.result() if recent else []
        found = self._merged(inquiry, result.hits, entries)
        return Findings(
            found=tuple(found),
            scope=way.scope,
            why=way.why,
            asked=inquiry.query,
            mode=result.mode,
            status=result.status,
            unknown_names=unknown,
        )

    def _entries_for(self, asked: _Asked, count: int) -> list[tuple[Entry, float]]:
        """What layer 1 has, within the time that is wanted."""
        inquiry = asked.inquiry
        if not inquiry.session_id:
            return []
        found = self._recent.search(asked.identity, inquiry.session_id, inquiry.query, count)
        times = inquiry.wanted.time_range
        if times is None:
            return found
        return [
            (entry, share)
            for entry, share in found
            if (times.start is None or entry.time >= times.start)
            and (times.end is None or entry.time <= times.end)
        ]

    def _merged(
        self,
        inquiry: Inquiry,
        hits: Sequence[SearchHit],
        entries: Sequence[tuple[Entry, float]],
    ) -> list[Finding]:
        """The best of both in one order, nothing twice."""
        found = [
            *(_of_hit(hit, inquiry) for hit in hits),
            *(_of_entry(entry, share) for entry, share in entries),
        ]
        origins = [each.origin for each in found[: len(hits)]]
        by_meaning = self._engine.reads(inquiry.query)
        passages = candidates_of(hits, origins, by_meaning=by_meaning)
        among = with_entries(inquiry.query, hits, passages, entries)
        ordered = [replace(found[index], score=score) for index, score in rerank(among)]
        return distinct(ordered, inquiry.top_k, self._told_of(ordered) if entries else ())

    def _told_of(self, findings: Sequence[Finding]) -> list[frozenset[str]]:
        """The contexts that each entry tells of."""
        seqs = [each.entry.seq for each in findings if each.entry is not None]
        told: dict[int, set[str]] = {}
        with self._database.read() as connection:
            for seq, context_id in connection.execute(
                "SELECT e.entry_seq, x.id FROM entry_contexts e"
                " JOIN contexts x ON x.seq = e.context_seq"
                " WHERE e.entry_seq IN (SELECT value FROM json_each(?))",
                (json.dumps(seqs),),
            ):
                told.setdefault(seq, set()).add(context_id)
        return [frozenset(told.get(each.entry.seq, ()) if each.entry else ()) for each in findings]


def _of_hit(hit: SearchHit, inquiry: Inquiry) -> Finding:
    named = inquiry.source.name if inquiry.source is not None else ""
    return Finding(
        origin=named or origin_of(hit.context, inquiry.sources),
        layer=hit.context.memory_layer,
        score=hit.score,
        lexical=hit.lexical,
        hit=hit,
    )


def _of_entry(entry: Entry, share: float) -> Finding:
    return Finding(origin=MEMORY, layer=MemoryLayer.RECENT, score=share, lexical=share, entry=entry)


def _asked_by(entry: Entry) -> str:
    """The question that an entry asks, or the message that it is; empty where it is neither."""
    if entry.kind == "message":
        return entry.said
    query = entry.arguments.get("query")
    return query if entry.action == "query" and isinstance(query, str) else ""

"""Searches events through their summaries and directly.

Two ways lead to an event (level 0). The first goes down: the summaries nearest to the query are
opened, breadth first, through their children. Everything reached gets the blended score
`0.5 * own + 0.5 * parent`. `own` is its own similarity to the query (at least 0.3 if it has no
vector yet), and `parent` is the score of the summary above it. The second way is direct: the event
itself is similar, with or without a summary. An event reached both ways keeps the higher score. The
algorithm follows OpenContext's HierarchicalEventTool, which scored neither the summaries nor their
children against the query.

All scores are on one scale, so that summaries, children and direct hits can be compared: that of
`storage.retrieval.ranking.fuse`, over all of them at once. Every hop sees only what the identity
sees, and no event outside the time range is reached.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from storage.contexts.filters import Selection, compile_filter
from storage.database import Database, Where
from storage.events.buckets import DAY, MONTH, SECOND, WEEK
from storage.events.hierarchy import FROM_SUMMARIES
from storage.index.embedding_models import similarities
from storage.index.lexical import UserIndex
from storage.models import (
    ContextType,
    Identity,
    IndexStatus,
    SearchFilter,
    SearchHit,
    TimeRange,
    TimeType,
)
from storage.retrieval.ranking import CANDIDATES, fuse
from storage.retrieval.search import Matched, Question, Scores, SearchEngine, hits_of

OWN = 0.5  # share of an item's own score in its blended score; the rest comes from its parent
NO_VECTOR = 0.3  # the similarity assumed for an item that is not embedded yet
MOST_REACHED = 1_000  # maximum events to consider on the way down; reading their vectors takes 5 ms

MOST_SUMMARIES = 3

_SUMMARY_LEVELS = (DAY, WEEK, MONTH)


@dataclass(frozen=True, slots=True)
class Step:
    """A summary on the way to an event."""

    id: str
    level: int  # 1 a day, 2 a week, 3 a month
    time_bucket: str


@dataclass(frozen=True, slots=True)
class EventHit:
    """A found event or summary."""

    hit: SearchHit
    own: float | None  # its own similarity, 0 to 1; None if unknown
    blended: float | None  # its score through the summaries; None if none leads to it
    path: tuple[Step, ...]
    children_ids: tuple[str, ...] = ()  # the children of a summary, oldest first


@dataclass(frozen=True, slots=True)
class EventResult:
    """The result of a search through the events."""

    events: tuple[EventHit, ...]  # events, best first
    summaries: tuple[EventHit, ...]  # best first, in addition to the events
    mode: str  # "hybrid", "lexical" while there are no vectors, or "listing" without a query
    status: IndexStatus


def search_events(  # noqa: PLR0913, PLR0917  # the dependencies and the query
    database: Database,
    engine: SearchEngine,
    identity: Identity,
    query: str,
    time_range: TimeRange | None,
    top_k: int,
) -> EventResult:
    """Searches the events of one identity.

    With a time range no event in it is too far from the query: the range already says what is
    wanted. A blank query lists the latest events. A range of event times also limits the summaries.
    """
    question = engine.question(identity, query)
    if time_range is not None:
        question = replace(question, floor=-1.0)
    with database.read() as connection:
        index = UserIndex(connection, identity.user_id)
        search = _Drilldown(connection, identity, question, time_range, index)
        if not query.strip():
            return search.latest(top_k)
        starts = search.starts(top_k)
        search.descend(starts)
        search.find_straight(engine)
        return search.answer(starts, top_k)


@dataclass
class _Drilldown:
    """The state of one search: what is known of the contexts it reached, by their seq."""

    connection: sqlite3.Connection
    identity: Identity
    question: Question
    time_range: TimeRange | None
    index: UserIndex
    chunks: dict[int, list[int]] = field(default_factory=dict)
    levels: dict[int, int] = field(default_factory=dict)
    children: dict[int, list[int]] = field(default_factory=dict)
    dense: dict[int, float] = field(default_factory=dict)
    lexical: dict[int, float] = field(default_factory=dict)

    def latest(self, top_k: int) -> EventResult:
        """Returns the most recent events, each by its first chunk."""
        seqs = self._newest()[:top_k]
        self._meet((seq, SECOND) for seq in seqs)
        chunks = [self.chunks[seq][0] for seq in seqs]
        hits = hits_of(self.connection, chunks)
        events = tuple(EventHit(hit, None, None, ()) for hit in hits)
        return EventResult(events, (), "listing", self.question.status)

    def starts(self, top_k: int) -> list[int]:
        """Returns the summaries to open: those of each level nearest to the query."""
        rows = self.connection.execute(
            f"SELECT x.seq, x.hierarchy_level {FROM_SUMMARIES} {self._summaries.sql}",
            self._summaries.values,
        )
        self._meet(rows)
        self._measure()
        own = self._best(self._fused(self.question.floor))
        best: list[int] = []
        for level in _SUMMARY_LEVELS:
            known = [seq for seq in own if self.levels[seq] == level]
            best += sorted(known, key=lambda seq: (-own[seq], -seq))[:top_k]
        return best

    def descend(self, starts: Collection[int]) -> None:
        """Opens all months and weeks, then days, best first, until enough events are reached."""
        opened = set(starts)
        for level in (MONTH, WEEK):
            children = self._open([seq for seq in opened if self.levels[seq] == level])
            self._meet(children.items())
            opened |= children.keys()
        ways = self._blend(starts, self._best(self._fused(-1.0)))
        days = [seq for seq in ways if self.levels[seq] == DAY]
        reached: dict[int, int] = {}
        for day in sorted(days, key=lambda seq: (-ways[seq][0], -seq)):
            reached |= self._open([day], MOST_REACHED - len(reached))
            if len(reached) >= MOST_REACHED:
                break
        self._meet(reached.items())

    def _open(self, parents: Collection[int], most: int = -1) -> dict[int, int]:
        """Returns the newest children of summaries, all by default, with their levels."""
        rows = self.connection.execute(
            "SELECT h.parent_seq, x.seq, x.hierarchy_level FROM json_each(?) p"
            " CROSS JOIN children h ON h.parent_seq = p.value"
            " CROSS JOIN contexts x ON x.seq = h.child_seq"
            f" WHERE ({self._summaries.sql}) OR ({self._events.sql})"
            " ORDER BY x.event_time DESC LIMIT ?",
            (json.dumps(list(parents)), *self._summaries.values, *self._events.values, most),
        ).fetchall()
        for parent, child, _ in rows:
            self.children.setdefault(parent, []).append(child)
        return {child: level for _, child, level in rows}

    def find_straight(self, engine: SearchEngine) -> None:
        """Finds events directly, and scores everything reached so far."""
        events = Selection(self.connection, self._events)
        near: dict[int, float] = {}
        if self.question.vector is not None:
            near = engine.nearest(self.connection, self.identity, self.question.vector, events)
        words = self.index.matches(self.question.terms, events, CANDIDATES)
        newest = () if self.time_range is None else self._newest()
        rows = self.connection.execute(
            "SELECT DISTINCT context_seq FROM chunks WHERE seq IN (SELECT value FROM json_each(?))",
            (json.dumps([*near, *words]),),
        )
        self._meet([*((row[0], SECOND) for row in rows), *((seq, SECOND) for seq in newest)])
        self._measure()

    def answer(self, starts: Collection[int], top_k: int) -> EventResult:
        """Returns the best events by either way, and the best of the opened summaries."""
        fused = self._fused(-1.0)
        own, eligible = self._best(fused), self._best(self._fused(self.question.floor))
        blended = self._blend(starts, own)
        scores = {
            seq: max(eligible.get(seq, 0.0), blended[seq][0] if seq in blended else 0.0)
            for seq, level in self.levels.items()
            if level == SECOND and (seq in eligible or seq in blended or self.time_range)
        }
        opened = {seq: own[seq] for seq in starts}
        return EventResult(
            self._hits(scores, top_k, fused, blended),
            self._hits(opened, min(top_k, MOST_SUMMARIES), fused, {}),
            "lexical" if self.question.vector is None else "hybrid",
            self.question.status,
        )

    @cached_property
    def _summaries(self) -> Where:
        """Matches summaries that overlap the range; only a range of event times limits them."""
        of_events = self.time_range is not None and self.time_range.time_type is TimeType.EVENT
        return self._where(_SUMMARY_LEVELS, self.time_range if of_events else None)

    @cached_property
    def _events(self) -> Where:
        return self._where((SECOND,), self.time_range)

    def _where(self, levels: tuple[int, ...], time_range: TimeRange | None) -> Where:
        criteria = SearchFilter(
            context_types=(ContextType.EVENT,), levels=levels, time_range=time_range
        )
        return compile_filter(self.identity, criteria)

    def _newest(self) -> list[int]:
        rows = self.connection.execute(
            f"SELECT x.seq FROM contexts x WHERE {self._events.sql}"
            " ORDER BY x.event_time DESC LIMIT ?",
            (*self._events.values, CANDIDATES),
        )
        return [int(row[0]) for row in rows]

    def _meet(self, contexts: Iterable[tuple[int, int]]) -> None:
        fresh = {seq: level for seq, level in contexts if seq not in self.levels}
        self.levels |= fresh
        rows = self.connection.execute(
            "SELECT context_seq, seq FROM chunks"
            " WHERE context_seq IN (SELECT value FROM json_each(?)) ORDER BY position",
            (json.dumps(list(fresh)),),
        )
        for context, chunk in rows:
            self.chunks.setdefault(context, []).append(chunk)

    def _measure(self) -> None:
        known = [chunk for chunks in self.chunks.values() for chunk in chunks]
        if self.question.vector is not None:
            fresh = [chunk for chunk in known if chunk not in self.dense]
            self.dense |= similarities(self.connection, self.question.vector, fresh)
        met = set(known)
        events = Selection(self.connection, self._events)
        found = self.index.matches(self.question.terms, events, 0, also=met)
        self.lexical |= {chunk: score for chunk, score in found.items() if chunk in met}

    def _fused(self, floor: float) -> dict[int, float]:
        """Scores each chunk that has a word of the query or lies above the floor."""
        return fuse(self.dense, self.lexical, self.question.weight, floor)

    def _best(self, fused: Mapping[int, float]) -> dict[int, float]:
        """Returns the score of each context, which is that of its best chunk."""
        own: dict[int, float] = {}
        for seq, chunks in self.chunks.items():
            scores = [fused[chunk] for chunk in chunks if chunk in fused]
            if scores:
                own[seq] = max(scores)
        return own

    def _blend(
        self, starts: Collection[int], own: Mapping[int, float]
    ) -> dict[int, tuple[float, tuple[int, ...]]]:
        """Returns the blended score of everything reached, and the summaries it was reached by."""
        best: dict[int, tuple[float, tuple[int, ...]]] = {seq: (own[seq], (seq,)) for seq in starts}
        for level in reversed(_SUMMARY_LEVELS):
            for parent in [seq for seq in best if self.levels[seq] == level]:
                above, path = best[parent]
                for child in self.children.get(parent, ()):
                    score = OWN * self._near(child, own) + (1 - OWN) * above
                    if child not in best or score > best[child][0]:
                        is_event = self.levels[child] == SECOND
                        best[child] = (score, path if is_event else (*path, child))
        return best

    def _near(self, seq: int, own: Mapping[int, float]) -> float:
        if any(chunk in self.dense for chunk in self.chunks.get(seq, ())):
            return own[seq]
        return max(own.get(seq, 0.0), NO_VECTOR)

    def _hits(
        self,
        scores: Mapping[int, float],
        count: int,
        fused: Mapping[int, float],
        blended: Mapping[int, tuple[float, tuple[int, ...]]],
    ) -> tuple[EventHit, ...]:
        best = sorted(scores, key=lambda seq: (-scores[seq], -self.levels[seq], -seq))[:count]
        shown = [max(self.chunks[seq], key=lambda chunk: fused.get(chunk, -1.0)) for seq in best]
        matched = Matched.of(self.index, shown, self.question.words)
        own = {chunk: scores[seq] for chunk, seq in zip(shown, best, strict=True)}
        found = hits_of(self.connection, shown, matched, Scores(self.dense, self.lexical, own))
        steps = self._steps(way for seq in best if seq in blended for way in blended[seq][1])
        hits = []
        for seq, chunk, hit in zip(best, shown, found, strict=True):
            score, path = blended.get(seq, (None, ()))
            way = tuple(steps[step] for step in path)
            hits.append(EventHit(hit, fused.get(chunk), score, way, self._children_ids(seq)))
        return tuple(hits)

    def _children_ids(self, seq: int) -> tuple[str, ...]:
        rows = self.connection.execute(
            "SELECT x.id FROM children k JOIN contexts x ON x.seq = k.child_seq"
            " WHERE k.parent_seq = ? ORDER BY x.event_time, x.seq",
            (seq,),
        )
        return tuple(row[0] for row in rows)

    def _steps(self, seqs: Iterable[int]) -> dict[int, Step]:
        rows = self.connection.execute(
            "SELECT seq, id, hierarchy_level, time_bucket FROM contexts"
            " WHERE seq IN (SELECT value FROM json_each(?))",
            (json.dumps(sorted(set(seqs))),),
        )
        return {row[0]: Step(*row[1:]) for row in rows}

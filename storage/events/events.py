"""Keeps the summaries of one identity's events up to date, and searches them."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storage.contexts.contexts import read_context, update_context
from storage.contexts.ingestion import insert_chunks, insert_context, insert_mentions, prepare
from storage.database import Database
from storage.events.buckets import DAY, MONTH, WEEK, Bucket
from storage.events.drilldown import EventResult, search_events
from storage.events.extractive import extract
from storage.events.hierarchy import (
    Gathered,
    Part,
    find_summary,
    gather,
    parts_of,
    summaries_of,
    wanted_buckets,
)
from storage.index.embedders.base import Embedder
from storage.index.indexer import Indexer
from storage.models import Context, ContextType, Identity, NewContext, TimeRange
from storage.retrieval.search import SearchEngine

SUMMARY_TYPE = "summary"
"""The raw_type of summaries."""

MOST_NAMES = 50
"""Maximum keywords and names a summary takes over from its children, by frequency."""


@dataclass(frozen=True, slots=True)
class Due:
    """A summary to be written."""

    bucket: Bucket
    parts: tuple[Part, ...]  # the texts to summarize, in order of time
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Review:
    """The state of a level's summaries."""

    due: tuple[Due, ...]  # those to write now, in order of time
    left: int
    unchanged: int


class Events:
    """The events of one identity; its methods block, so call them in a worker thread.

    Summaries are built from all events that the identity sees, and stored under exactly this
    identity.
    """

    def __init__(
        self,
        identity: Identity,
        *,
        database: Database,
        engine: SearchEngine,
        embedder: Embedder,
        indexer: Indexer,
    ) -> None:
        self._identity = identity
        self._database = database
        self._engine = engine
        self._embedder = embedder
        self._indexer = indexer

    def search(self, query: str, time_range: TimeRange | None, top_k: int) -> EventResult:
        """Searches events; see `storage.events.drilldown`."""
        return search_events(self._database, self._engine, self._identity, query, time_range, top_k)

    def review(self, level: int, until: float, limit: int) -> Review:
        """Finds the summaries of a level that are due; the levels below it must be up to date.

        Days that began until then count, and weeks and months that ended.
        """
        due: list[Due] = []
        left = unchanged = 0
        with self._database.read() as connection:
            known = summaries_of(connection, self._identity, level)
            for bucket in wanted_buckets(connection, self._identity, level, until):
                gathered = gather(connection, self._identity, bucket)
                if bucket in known and known[bucket]["sha256"] == gathered.fingerprint:
                    unchanged += 1
                elif gathered.told and len(due) == limit:
                    left += 1
                elif gathered.told:
                    parts = parts_of(connection, gathered.told)
                    due.append(Due(bucket, parts, gathered.fingerprint))
        return Review(tuple(due), left, unchanged)

    def extract(self, due: Due, max_characters: int) -> str:
        """Extracts the most central sentences for a summary."""
        extracts = extract([part.text for part in due.parts], self._embedder, max_characters)
        parts = [(part.label, text) for part, text in zip(due.parts, extracts, strict=True) if text]
        if due.bucket.level == DAY:
            return "\n".join(text for _, text in parts)
        return "\n".join(f"{label}: {text}" if _is_day(label) else text for label, text in parts)

    def keep(self, due: Due, text: str, summarizer: str) -> Context | None:
        """Writes a summary in place of its earlier version, in one transaction.

        Returns the summary, or another process's of the same events if that came first; None if the
        events changed since the review, so that the next review finds it due again.
        """
        with self._database.write() as connection:
            gathered = gather(connection, self._identity, due.bucket)
            if gathered.fingerprint != due.fingerprint:
                return None
            known = find_summary(connection, self._identity, due.bucket)
            if known is not None and known["sha256"] == due.fingerprint:
                return read_context(connection, known["seq"])
            new = _summary(due, gathered, text, summarizer)
            seq = self._place(connection, due.bucket, new, None if known is None else known["seq"])
            _adopt(connection, seq, due.bucket, gathered.children)
            stored = read_context(connection, seq)
        self._indexer.notify()
        return stored

    def prune(self) -> int:
        """Deletes the summaries of buckets that have no events left.

        Returns the number of deleted summaries.
        """
        with self._database.read() as connection:
            if not any(self._empty(connection, level) for level in (DAY, WEEK, MONTH)):
                return 0
        gone = 0
        with self._database.write() as connection:
            for level in (DAY, WEEK, MONTH):  # a week is empty once its days are gone
                seqs = self._empty(connection, level)
                connection.executemany(
                    "DELETE FROM contexts WHERE seq = ?", ((seq,) for seq in seqs)
                )
                gone += len(seqs)
        self._indexer.notify()
        return gone

    def _empty(self, connection: sqlite3.Connection, level: int) -> list[int]:
        """Returns the summaries of a level that have no sources left."""
        return [
            row["seq"]
            for bucket, row in summaries_of(connection, self._identity, level).items()
            if not gather(connection, self._identity, bucket).told
        ]

    def _place(
        self, connection: sqlite3.Connection, bucket: Bucket, new: NewContext, seq: int | None
    ) -> int:
        chunks = prepare(new)
        if seq is None:
            now = time.time()
            seq = insert_context(connection, self._identity, new, create_time=now, update_time=now)
            connection.execute(
                "UPDATE contexts SET hierarchy_level = ?, time_bucket = ?, bucket_end = ?"
                " WHERE seq = ?",
                (bucket.level, bucket.label, bucket.end, seq),
            )
        else:
            update_context(connection, seq, new, merge_count=0)
            connection.execute("DELETE FROM chunks WHERE context_seq = ?", (seq,))
            connection.execute("DELETE FROM mentions WHERE context_seq = ?", (seq,))
        insert_chunks(connection, seq, self._identity.user_id, chunks)
        insert_mentions(connection, seq, self._identity.user_id, new.entities)
        return seq


def _summary(due: Due, gathered: Gathered, text: str, summarizer: str) -> NewContext:
    told = gathered.told
    counts = [json.loads(row["metadata"]).get("events", 1) for row in told]
    events = len(told) if due.bucket.level == DAY else sum(counts)
    return NewContext(
        context_type=ContextType.EVENT,
        title=due.bucket.title,
        text=text,
        keywords=_commonest(row["keywords"] for row in told),
        entities=_commonest(row["entities"] for row in told),
        importance=max(row["importance"] for row in told),
        event_time=due.bucket.start,
        metadata={"summarizer": summarizer, "events": events},
        raw_type=SUMMARY_TYPE,
        sha256=due.fingerprint,
    )


def _commonest(lists: Iterable[str]) -> tuple[str, ...]:
    counted = Counter(name for names in lists for name in json.loads(names))
    return tuple(name for name, _ in counted.most_common(MOST_NAMES))


def _adopt(
    connection: sqlite3.Connection, seq: int, bucket: Bucket, children: Sequence[sqlite3.Row]
) -> None:
    """Sets the children of a summary, and the parent of each child that belongs to it."""
    connection.execute("DELETE FROM children WHERE parent_seq = ?", (seq,))
    connection.executemany(
        "INSERT INTO children (parent_seq, child_seq) VALUES (?, ?)",
        ((seq, child["seq"]) for child in children),
    )
    own = [child["seq"] for child in children if _counts_to(bucket, child)]
    connection.executemany(
        "UPDATE contexts SET parent_seq = ? WHERE seq = ?", ((seq, child) for child in own)
    )


def _counts_to(bucket: Bucket, child: sqlite3.Row) -> bool:
    straddles = child["hierarchy_level"] == WEEK
    return not straddles or Bucket.parse(child["time_bucket"]).month == bucket


def _is_day(label: str) -> bool:
    return Bucket.parse(label).level == DAY

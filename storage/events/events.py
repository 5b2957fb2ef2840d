"""Keeps the summaries of one identity's events up to date, and searches them."""

from __future__ import annotations

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storage.contexts.contexts import delete_contexts, insert_whole, read_context, rewrite_context
from storage.contexts.ingestion import prepare
from storage.database import View, update_row
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
from storage.models import Context, ContextType, Identity, NewContext, TimeRange
from storage.stores import Stores

SUMMARY_TYPE = "summary"  # the raw_type of summaries
MOST_NAMES = 50  # maximum keywords and names a summary takes over from its children, by frequency


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

    def __init__(self, identity: Identity, library: Stores) -> None:
        self._identity = identity
        self._library = library
        self._database = library.database

    def search(self, query: str, time_range: TimeRange | None, top_k: int) -> EventResult:
        """Searches events; see `storage.events.drilldown`."""
        return search_events(
            self._database, self._library.engine, self._identity, query, time_range, top_k
        )

    def review(self, level: int, until: float, limit: int) -> Review:
        """Finds the summaries of a level that are due; the levels below it must be up to date.

        Days that began until then count, and weeks and months that ended.
        """
        due: list[Due] = []
        left = unchanged = 0
        with self._database.read() as connection:
            view = View(connection, self._identity)
            known = summaries_of(view, level)
            for bucket in wanted_buckets(view, level, until):
                gathered = gather(view, bucket)
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
        extracts = extract(
            [part.text for part in due.parts], self._library.embedder, max_characters
        )
        parts = [(part.label, text) for part, text in zip(due.parts, extracts, strict=True) if text]
        if due.bucket.level == DAY:
            return "\n".join(text for _, text in parts)
        return "\n".join(
            f"{label}: {text}" if Bucket.parse(label).level == DAY else text
            for label, text in parts
        )

    def keep(self, due: Due, text: str, summarizer: str) -> Context | None:
        """Writes a summary in place of its earlier version, in one transaction.

        Returns the summary, or another process's of the same events if that came first; None if the
        events changed since the review, so that the next review finds it due again.
        """
        with self._database.write() as connection:
            view = View(connection, self._identity)
            gathered = gather(view, due.bucket)
            if gathered.fingerprint != due.fingerprint:
                return None
            known = find_summary(view, due.bucket)
            if known is not None and known["sha256"] == due.fingerprint:
                return read_context(connection, known["seq"])
            new = _summary(due, gathered, text, summarizer)
            seq = _place(view, due.bucket, new, None if known is None else known["seq"])
            _adopt(connection, seq, due.bucket, gathered.children)
            stored = read_context(connection, seq)
        self._library.indexer.notify()
        return stored

    def prune(self) -> int:
        """Deletes the summaries of buckets without events, and returns how many."""
        with self._database.read() as connection:
            view = View(connection, self._identity)
            if not any(_empty(view, level) for level in (DAY, WEEK, MONTH)):
                return 0
        gone = 0
        with self._database.write() as connection:
            view = View(connection, self._identity)
            for level in (DAY, WEEK, MONTH):  # a week is empty once its days are gone
                seqs = _empty(view, level)
                delete_contexts(connection, seqs)
                gone += len(seqs)
        self._library.indexer.notify()
        return gone


def _empty(view: View, level: int) -> list[int]:
    """Returns the summaries of a level that have no sources left."""
    found = summaries_of(view, level).items()
    return [row["seq"] for bucket, row in found if not gather(view, bucket).told]


def _place(view: View, bucket: Bucket, new: NewContext, seq: int | None) -> int:
    chunks = prepare(new)
    if seq is not None:
        rewrite_context(view, seq, new, chunks)
        return seq
    seq, _ = insert_whole(view, new, chunks, time.time())
    level = {"hierarchy_level": bucket.level, "time_bucket": bucket.label, "bucket_end": bucket.end}
    update_row(view.connection, "contexts", level, {"seq": seq})
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
    own = [  # a week belongs to one month only
        child["seq"]
        for child in children
        if child["hierarchy_level"] != WEEK or Bucket.parse(child["time_bucket"]).month == bucket
    ]
    connection.executemany(
        "UPDATE contexts SET parent_seq = ? WHERE seq = ?", ((seq, child) for child in own)
    )

"""The hierarchy of events: which summaries should exist, and the sources of each.

A day covers its events, a week its days. A month covers the weeks that overlap it, and those of its
days that have no week yet. A month's text covers its own days only: of a week that straddles two
months, the days.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from storage.database import View, Where
from storage.events.buckets import DAY, SECOND, WEEK, Bucket
from storage.models import ContextType

MOST_CHUNKS = 3  # maximum chunks of a long event that a summary reads: some 4,000 characters

FROM_SUMMARIES = "FROM contexts x INDEXED BY contexts_of_bucket WHERE x.hierarchy_level > 0 AND"
"""Without the hint SQLite would choose an index of all contexts, which is far larger."""

_COLUMNS = (
    "x.seq, x.id, x.sha256, x.title, x.summary, x.keywords, x.entities, x.importance,"
    " x.metadata, x.event_time, x.hierarchy_level, x.time_bucket"
)


@dataclass(frozen=True, slots=True)
class Gathered:
    """The sources of a summary."""

    children: Sequence[sqlite3.Row]
    told: Sequence[sqlite3.Row]  # the contexts its text is written from, in order of time

    @property
    def fingerprint(self) -> str:
        """A hash that changes with any source or its text."""
        lines = {f"{row['id']} {row['sha256']}\n" for row in (*self.children, *self.told)}
        return sha256("".join(sorted(lines)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Part:
    """The text of one source of a summary."""

    label: str  # its time: `09:30` for an event, else the label of its bucket
    text: str


def wanted_buckets(view: View, level: int, until: float) -> list[Bucket]:
    """Returns the buckets of a level that should have a summary, in order of time.

    Weeks and months follow from the existing summaries of days. A day must have begun by `until`, a
    week or a month must have ended.
    """
    if level == DAY:
        owner = view.seen("x")
        rows = view.rows(
            f"SELECT DISTINCT x.event_time FROM contexts x WHERE {owner.sql}"
            " AND x.context_type = ? AND x.hierarchy_level = ?",
            (*owner.values, ContextType.EVENT, SECOND),
        )
        days = {Bucket.of(DAY, row[0]) for row in rows}
        return sorted(day for day in days if day.start <= until)
    made = _summaries(view, DAY)
    buckets = {Bucket.of(level, row["event_time"]) for row in made}
    return sorted(bucket for bucket in buckets if bucket.end - 1 <= until)


def summaries_of(view: View, level: int) -> dict[Bucket, sqlite3.Row]:
    """Returns the summaries of a level that belong to exactly this identity."""
    rows = _summaries(view, level)
    return {Bucket.parse(row["time_bucket"]): row for row in rows}


def find_summary(view: View, bucket: Bucket) -> sqlite3.Row | None:
    """Returns the summary of a bucket that belongs to exactly this identity."""
    rows = _summaries(view, bucket.level, bucket)
    return next((row for row in rows if row["time_bucket"] == bucket.label), None)


def gather(view: View, bucket: Bucket) -> Gathered:
    """Collects the sources of a bucket's summary; without any there should be no summary."""
    if bucket.level == DAY:
        events = _events(view, bucket)
        return Gathered(events, events)
    days = _summaries(view, DAY, bucket)
    if bucket.level == WEEK:
        return Gathered(days, days)
    weeks = _summaries(view, WEEK, bucket)
    there = {Bucket.parse(week["time_bucket"]): week for week in weeks}
    whole = {week for week in there if bucket.start <= week.start and week.end <= bucket.end}
    loose = [day for day in days if _week_of(day) not in there]
    parted = [day for day in days if _week_of(day) not in whole]
    told = [*parted, *(there[week] for week in whole)]
    return Gathered([*weeks, *loose], sorted(told, key=lambda row: float(row["event_time"])))


def parts_of(connection: sqlite3.Connection, rows: Sequence[sqlite3.Row]) -> tuple[Part, ...]:
    """Returns the texts of contexts, using an event's own summary if it has one."""
    texts: dict[int, list[str]] = {}
    for row in connection.execute(
        "SELECT context_seq, content FROM chunks WHERE position < ?"
        " AND context_seq IN (SELECT value FROM json_each(?)) ORDER BY context_seq, position",
        (MOST_CHUNKS, json.dumps([row["seq"] for row in rows])),
    ):
        texts.setdefault(row["context_seq"], []).append(row["content"])
    return tuple(_part(row, texts.get(row["seq"], ())) for row in rows)


def _part(row: sqlite3.Row, texts: Iterable[str]) -> Part:
    if row["hierarchy_level"] > SECOND:
        return Part(row["time_bucket"], "\n".join(texts))
    text = row["summary"] or "\n".join(texts)
    is_titled = text.startswith(row["title"])
    text = text if is_titled else f"{row['title']}: {text}"
    return Part(Bucket.of(SECOND, row["event_time"]).label[11:16], text)


def _week_of(day: sqlite3.Row) -> Bucket:
    return Bucket.of(WEEK, day["event_time"])


def _events(view: View, bucket: Bucket) -> list[sqlite3.Row]:
    owner = view.seen("x")
    return view.rows(
        f"SELECT {_COLUMNS} FROM contexts x WHERE {owner.sql} AND x.context_type = ?"
        " AND x.hierarchy_level = ? AND x.event_time >= ? AND x.event_time < ?"
        " ORDER BY x.event_time, x.seq",
        (*owner.values, ContextType.EVENT, SECOND, bucket.start, bucket.end),
    )


def _summaries(view: View, level: int, within: Bucket | None = None) -> list[sqlite3.Row]:
    """Returns the summaries of a level that overlap a bucket, in order of time."""
    owner = view.own("x")
    overlap = Where("TRUE", ())
    if within is not None:
        overlap = Where("x.event_time < ? AND x.bucket_end > ?", (within.end, within.start))
    return view.rows(
        f"SELECT {_COLUMNS} {FROM_SUMMARIES} {owner.sql} AND x.hierarchy_level = ?"
        f" AND {overlap.sql} ORDER BY x.event_time",
        (*owner.values, level, *overlap.values),
    )

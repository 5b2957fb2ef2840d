"""Imports the documents, knowledge, events and summaries of an export."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import astuple

from storage.contexts.ingestion import PreparedChunk, as_json, chunk_terms, prepare, replace_text
from storage.database import View, insert_row, update_row
from storage.events.buckets import SECOND, Bucket
from storage.events.hierarchy import gather
from storage.keeping.records import ContextRecord, Outcome
from storage.memory.promotion import find_made
from storage.models import ContextType, Identity, NewContext, Turn
from storage.reading.formats import MARKDOWN_MEDIA_TYPES

_NAMESPACE = uuid.UUID("8d7a26d6-2f5c-4f0b-9b0e-5a0f6c1f3f57")

_COLUMNS = {
    *("title", "summary", "confidence", "importance", "create_time", "update_time", "event_time"),
    *("media_type", "file_path", "sha256", "merge_count"),
}
"""The columns that take the export's values unchanged."""

_LAYER = "coalesce((SELECT m.layer FROM memories m WHERE m.context_seq = x.seq), 0)"
_NOT_MADE = "NOT EXISTS (SELECT 1 FROM memory_parts p WHERE p.memory_seq = x.seq)"


class ContextImporter:
    """Imports the contexts of one export and the links between them."""

    def __init__(self, context_ids: frozenset[str]) -> None:
        self._context_ids = context_ids
        self.seqs: dict[str, int] = {}
        self._parents: list[tuple[int, str]] = []
        self._summaries: list[tuple[int, Identity, Bucket]] = []
        self._parts: list[tuple[int, int, bool]] = []

    def add(self, view: View, record: ContextRecord) -> Outcome:
        """Stores a context: a document by its source, a summary by its bucket, others by id.

        A stored context is rewritten if the export's version is newer. Knowledge with an identical
        text counts as the same, and so does a memory made from the same source.
        """
        stored = self._find_stored(view, record)
        outcome: Outcome = "unchanged"
        if stored is None:
            seq, outcome = _insert(view, record), "added"
        else:
            seq = stored["seq"]
            if stored["update_time"] < record.update_time:
                outcome = "replaced"
                update_row(view.connection, "contexts", _row(record), {"seq": seq})
        if outcome != "unchanged":
            replace_text(view, seq, _chunks(record), record.entities, one_of_many=True)
            _remember(view, seq, record)
        self.seqs[record.id] = seq
        if record.parent_id:
            self._parents.append((seq, record.parent_id))
        self._parts.extend((seq, each.entry_id, each.is_copy) for each in record.made_from)
        if record.hierarchy_level:
            self._summaries.append((seq, view.identity, Bucket.parse(record.time_bucket)))
        return outcome

    def tie(self, connection: sqlite3.Connection, entries: Mapping[int, int], limit: int) -> bool:
        """Links contexts to later summaries and entries; returns whether any links are left."""
        connection.executemany(
            "UPDATE contexts SET parent_seq = ? WHERE seq = ? AND parent_seq IS NULL",
            (
                (self.seqs[parent_id], seq)
                for seq, parent_id in self._parents[:limit]
                if parent_id in self.seqs
            ),
        )
        for seq, identity, bucket in self._summaries[:limit]:
            # Its sources, so that it is emptied once one of them is deleted.
            children = gather(View(connection, identity), bucket).children
            connection.executemany(
                "INSERT OR IGNORE INTO children (parent_seq, child_seq) VALUES (?, ?)",
                ((seq, child["seq"]) for child in children),
            )
        connection.executemany(
            "INSERT OR IGNORE INTO memory_parts (memory_seq, entry_seq, is_copy) VALUES (?, ?, ?)",
            (
                (seq, entries[entry_id], is_copy)
                for seq, entry_id, is_copy in self._parts[:limit]
                if entry_id in entries
            ),
        )
        del self._parents[:limit], self._summaries[:limit], self._parts[:limit]
        return bool(self._parents or self._summaries or self._parts)

    def _find_stored(self, view: View, record: ContextRecord) -> sqlite3.Row | None:
        own = view.own("x")
        found = f"SELECT x.seq, x.id, x.update_time FROM contexts x WHERE {own.sql}"
        if record.hierarchy_level:
            found += " AND x.hierarchy_level = ? AND x.time_bucket = ?"
            return view.row(found, (*own.values, record.hierarchy_level, record.time_bucket))
        found += " AND x.hierarchy_level = 0 AND x.context_type = ?"
        values = (*own.values, record.context_type)
        if record.context_type is ContextType.DOCUMENT:
            found += " AND x.raw_type = ? AND x.raw_id = ?"
            return view.row(found, (*values, record.raw_type, record.raw_id))
        ids = (record.id, _other_id(view, record))
        row = view.row(f"{found} AND x.id IN (?, ?)", (*values, *ids))
        if row is None and record.made_from:
            made = find_made(view, record.raw_type, record.raw_id)
            seq = -1 if made is None else made["seq"]
            return view.row(f"{found} AND x.seq = ?", (*values, seq))
        if row is None and record.context_type is ContextType.KNOWLEDGE:
            found += f" AND x.sha256 = ? AND {_LAYER} = ? AND {_NOT_MADE}"
            row = view.row(found, (*values, record.sha256, record.memory_layer))
            if row is not None and row["id"] in self._context_ids:  # it has its own record
                return None
        return row


def _insert(view: View, record: ContextRecord) -> int:
    taken = view.rows("SELECT 1 FROM contexts WHERE id = ?", (record.id,))
    row = view.owner | {"id": _other_id(view, record) if taken else record.id}
    kind = record.model_dump(include={"context_type", "raw_type", "raw_id", "hierarchy_level"})
    return insert_row(view.connection, "contexts", row | kind | _row(record))


def _other_id(view: View, record: ContextRecord) -> str:
    """Derives the id of a context whose own id another owner has; stable across imports."""
    return uuid.uuid5(_NAMESPACE, "\0".join((record.id, *astuple(view.identity)))).hex


def _row(record: ContextRecord) -> dict[str, object]:
    is_summary = record.hierarchy_level > 0
    is_event = record.context_type is ContextType.EVENT
    bucket = (
        Bucket.parse(record.time_bucket) if is_summary else Bucket.of(SECOND, record.event_time)
    )
    return {
        **record.model_dump(include=_COLUMNS),
        "keywords": as_json(record.keywords),
        "entities": as_json(record.entities),
        "metadata": as_json(record.metadata),
        "of_turns": bool(record.turns),
        "time_bucket": bucket.label if is_event else "",
        "bucket_end": bucket.end if is_summary else None,
    }


def _chunks(record: ContextRecord) -> Sequence[PreparedChunk]:
    """Returns the exported passages; without them, splits the text again."""
    if record.passages is None:
        return _split_again(record)
    chunks = []
    for place, passage in enumerate(record.passages):
        content = record.text[passage.start : passage.end]
        about = () if place else (record.summary, *record.keywords)
        terms = chunk_terms(record.title, passage.heading, content, about)
        chunks.append(PreparedChunk(passage.heading, content, passage.start, *terms))
    return chunks


def _split_again(record: ContextRecord) -> Sequence[PreparedChunk]:
    if not record.text.strip():
        return ()  # a summary of deleted sources has no text
    new = NewContext(
        title=record.title,
        text=record.text,
        turns=tuple(Turn(each.heading, each.content) for each in record.turns),
        markdown=record.media_type in MARKDOWN_MEDIA_TYPES,
        summary=record.summary,
        keywords=record.keywords,
    )
    return prepare(new)


def _remember(view: View, seq: int, record: ContextRecord) -> None:
    """Stores the row that makes a context a memory."""
    view.connection.execute("DELETE FROM memories WHERE context_seq = ?", (seq,))
    if record.memory_layer:
        row = {"context_seq": seq, "user_id": view.user_id, "layer": record.memory_layer}
        row |= record.model_dump(include={"session_id", "uses", "last_used"})
        insert_row(view.connection, "memories", row)

"""Knowledge: what says nearly the same as something known is merged into it.

Memories are merged into memories, of layer 2 or 4, everything else into what is no memory. What is
said again and is important now belongs to layer 2.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from dataclasses import replace

from storage.contexts.contexts import insert_whole, read_context, update_context
from storage.contexts.filters import Selection
from storage.contexts.ingestion import (
    PreparedChunk,
    insert_chunks,
    insert_mentions,
    normalized,
    prepare,
)
from storage.database import Database, Where, exactly
from storage.errors import StorageUnavailableError
from storage.index.embedders.base import scaled_cosine
from storage.index.embedding_models import Embedding, Models, keep_vector, passage, store_vector
from storage.memory.layers import raise_layer
from storage.memory.models import MemoryLayer
from storage.models import Context, ContextType, Identity, NewContext
from storage.retrieval.search import SearchEngine

__all__ = ["MERGE_SIMILARITY", "KnowledgeBase"]

MERGE_SIMILARITY = 0.85
"""Cosine, by the bundled model, from which two pieces of knowledge say nearly the same."""

MAX_MERGED_CHARS = 8_000
"""What has grown longer than this is left as it is: no longer one piece of knowledge."""

_NO_MEMORY = "NOT EXISTS (SELECT 1 FROM memories m WHERE m.context_seq = x.seq)"
_A_FACT = (
    "EXISTS (SELECT 1 FROM memories m WHERE m.context_seq = x.seq"
    f" AND m.layer IN ({MemoryLayer.IMPORTANT:d}, {MemoryLayer.SEMANTIC:d}))"
    " AND NOT EXISTS (SELECT 1 FROM memory_parts p WHERE p.memory_seq = x.seq)"
)
"""A memory of what somebody said: what was made from entries is forgotten with them, and so may
hold nothing else."""


class KnowledgeBase:
    """Adds knowledge, each piece beside or into what is known under the same identity.

    Args:
        database: The record.
        models: Makes the vectors that are compared.
        engine: Finds what is near.
    """

    def __init__(self, database: Database, models: Models, engine: SearchEngine) -> None:
        self._database = database
        self._models = models
        self._engine = engine

    def add(
        self, identity: Identity, new: NewContext, chunks: Sequence[PreparedChunk]
    ) -> tuple[Context, float | None]:
        """Stores a piece of knowledge.

        A text of several chunks is merged into the very same text alone. While the embedder is not
        available nothing is merged but the same text.

        Returns:
            The context that holds it now, and how near that was to it if it was known before.
        """
        vector = self._vector(new, chunks)
        with self._database.write() as connection:
            known = self._known(connection, identity, new, vector)
            if known is not None:
                seq, near = known
                self._merge(connection, identity, seq, new, vector)
                return read_context(connection, seq), near
            seq, chunk_seqs = insert_whole(connection, identity, new, chunks, time.time())
            if vector is not None:
                store_vector(connection, chunk_seqs[0], vector)
            return read_context(connection, seq), None

    def _vector(self, new: NewContext, chunks: Sequence[PreparedChunk]) -> Embedding | None:
        if len(chunks) > 1:
            return None
        text = passage(new.title, chunks[0].heading, chunks[0].content)
        try:
            (vector,) = Embedding.of_passages(*self._models.current(), [text])
        except StorageUnavailableError:
            return None  # the queue has it embedded later
        return vector

    def _known(
        self,
        connection: sqlite3.Connection,
        identity: Identity,
        new: NewContext,
        vector: Embedding | None,
    ) -> tuple[int, float] | None:
        """The context that says the same, and how near it is."""
        owner = exactly(identity, "x")
        kind = _A_FACT if new.memory_layer else _NO_MEMORY
        where = Where(
            f"{owner.sql} AND x.context_type = ? AND {kind}",
            (*owner.values, ContextType.KNOWLEDGE),
            narrows=True,
        )
        same = connection.execute(
            f"SELECT x.seq FROM contexts x WHERE {where.sql} AND x.sha256 = ?",
            (*where.values, new.sha256),
        ).fetchone()
        if same is not None:
            return int(same[0]), 1.0
        if vector is None:
            return None
        selection = Selection(connection, where)
        for chunk_seq, near in self._engine.nearest(
            connection, identity, vector, selection
        ).items():
            if near < scaled_cosine(MERGE_SIMILARITY, vector.floor):
                break
            seq, length = connection.execute(
                "SELECT context_seq, (SELECT sum(length(content)) FROM chunks s"
                " WHERE s.context_seq = c.context_seq) FROM chunks c WHERE c.seq = ?",
                (chunk_seq,),
            ).fetchone()
            if length + len(new.text) <= MAX_MERGED_CHARS:
                return int(seq), near
        return None

    def _merge(
        self,
        connection: sqlite3.Connection,
        identity: Identity,
        seq: int,
        new: NewContext,
        vector: Embedding | None,
    ) -> None:
        known = read_context(connection, seq)
        rows = connection.execute(
            "SELECT content FROM chunks WHERE context_seq = ? ORDER BY position", (seq,)
        ).fetchall()
        text = "\n".join(row[0] for row in rows)
        is_said = _plain(new.text) in _plain(text)
        merged = normalized(
            replace(
                new,
                title=known.title or new.title,
                text=text if is_said else f"{text}\n{new.text}",
                summary=new.summary or known.summary,
                keywords=(*known.keywords, *new.keywords),
                entities=(*known.entities, *new.entities),
                confidence=max(known.confidence, new.confidence),
                importance=max(known.importance, new.importance),
                event_time=known.event_time if new.event_time is None else new.event_time,
                metadata={**known.metadata, **new.metadata},
                raw_type=known.raw_type or new.raw_type,
                raw_id=known.raw_id or new.raw_id,
                sha256="",
            )
        )
        update_context(connection, seq, merged, merge_count=known.merge_count + 1)
        if new.memory_layer == MemoryLayer.IMPORTANT:
            raise_layer(connection, seq)
        insert_mentions(connection, seq, identity.user_id, merged.entities)
        connection.execute("DELETE FROM chunks WHERE context_seq = ?", (seq,))
        chunk_seqs = insert_chunks(connection, seq, identity.user_id, prepare(merged))
        if vector is not None:
            # Until the merged text is embedded, so that it is found and merged into at once.
            keep_vector(connection, chunk_seqs[0], vector)


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()

"""Knowledge: merges near-duplicates into what is known, or replaces what they contradict.

Memories are merged only into memories of layer 2 or 4, and other knowledge only into other
knowledge. Knowledge that is repeated as important moves to layer 2.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from storage.contexts.contexts import insert_whole, read_context, update_context
from storage.contexts.filters import Selection
from storage.contexts.ingestion import PreparedChunk, normalized, prepare, replace_text
from storage.contexts.superseding import Superseded, contents_of, find_superseded, former_chunks
from storage.database import Database, View, Where
from storage.errors import ContextNotFoundError, StorageUnavailableError
from storage.index.embedders.base import scaled_cosine
from storage.index.embedding_models import Embedding, Models, keep_vector, passage, store_vector
from storage.memory.promotion import raise_layer
from storage.models import Context, ContextType, Identity, MemoryLayer, NewContext, Stored
from storage.retrieval.ranking import can_say_the_same
from storage.retrieval.search import SearchEngine

MERGE_SIMILARITY = 0.85  # minimum cosine similarity, in the bundled model, of near-duplicates

MAX_MERGED_CHARS = 8_000
"""Longer texts are not merged further: they are no longer a single piece of knowledge."""

_NO_MEMORY = "NOT EXISTS (SELECT 1 FROM memories m WHERE m.context_seq = x.seq)"
_A_FACT = (
    "EXISTS (SELECT 1 FROM memories m WHERE m.context_seq = x.seq"
    f" AND m.layer IN ({MemoryLayer.IMPORTANT:d}, {MemoryLayer.SEMANTIC:d}))"
    " AND NOT EXISTS (SELECT 1 FROM memory_parts p WHERE p.memory_seq = x.seq)"
)
"""A memory of a stated fact.

Memories built from entries are deleted with those entries, so nothing else may be merged into them.
"""


class KnowledgeBase:
    """Adds knowledge next to, or into, what is known under the same identity."""

    def __init__(self, database: Database, models: Models, engine: SearchEngine) -> None:
        self._database = database
        self._models = models
        self._engine = engine

    def add(
        self,
        identity: Identity,
        new: NewContext,
        chunks: Sequence[PreparedChunk],
        replaces: str = "",
    ) -> Stored:
        """Stores a piece of knowledge.

        A text of several chunks is merged only into an identical text, and so is any text while the
        embedder is unavailable. A text that gives an attribute of a subject a new value replaces
        the earlier value; `replaces` names the replaced knowledge by its id or its whole text.
        """
        vector = self._vector(new, chunks)
        with self._database.write() as connection:
            view = View(connection, identity)
            known = None if replaces else _same(view, new)
            if known is None:
                selection = Selection(connection, _merge_targets(view, new))
                over = (
                    _find_replaced(view, new, replaces)
                    if replaces
                    else find_superseded(view, new, selection)
                )
                if over is not None:
                    _supersede(view, over, new, vector)
                    context = read_context(connection, over.seq)
                    return Stored(context, "superseded", former="\n".join(over.ended))
                if vector is not None:
                    least = scaled_cosine(MERGE_SIMILARITY, vector.floor)
                    near = self._engine.alike(view, vector, selection, least)
                    known = _find_near(connection, near, new)
            if known is not None:
                seq, alike = known
                _merge(view, seq, new, vector)
                return Stored(read_context(connection, seq), "merged", alike)
            seq, chunk_seqs = insert_whole(view, new, chunks, time.time())
            if vector is not None:
                store_vector(connection, chunk_seqs[0], vector)
            return Stored(read_context(connection, seq), "added")

    def _vector(self, new: NewContext, chunks: Sequence[PreparedChunk]) -> Embedding | None:
        if len(chunks) > 1:
            return None
        text = passage(new.title, chunks[0].heading, chunks[0].content)
        try:
            (vector,) = Embedding.of_passages(*self._models.current(), [text])
        except StorageUnavailableError:
            return None  # the queue embeds it later
        return vector


def _same(view: View, new: NewContext) -> tuple[int, float] | None:
    """Finds the context with exactly this text."""
    where = _merge_targets(view, new)
    row = view.row(
        f"SELECT x.seq FROM contexts x WHERE {where.sql} AND x.sha256 = ?",
        (*where.values, new.sha256),
    )
    return None if row is None else (int(row[0]), 1.0)


def _find_replaced(view: View, new: NewContext, name: str) -> Superseded:
    """Finds the knowledge that a caller names in `replaces`."""
    where = _merge_targets(view, new)
    row = view.row(
        f"SELECT x.seq FROM contexts x WHERE {where.sql} AND (x.id = ? OR x.sha256 = ?)",
        (*where.values, name.strip(), normalized(replace(new, text=name, sha256="")).sha256),
    )
    if row is None:
        raise ContextNotFoundError(
            f"replaces: no such knowledge is stored: {name!r}.",
            suggestions=("Give its id as query shows it, or its whole text.",),
        )
    text, _ = contents_of(view.connection, row["seq"])
    return Superseded(row["seq"], standing=(), ended=tuple(text.split("\n")))


def _merge(view: View, seq: int, new: NewContext, vector: Embedding | None) -> None:
    known = read_context(view.connection, seq)
    text, past = contents_of(view.connection, seq)
    is_contained = _normalize(new.text) in _normalize(text)
    merged = normalized(
        replace(
            _join(known, new),
            title=known.title or new.title,
            text=text if is_contained else f"{text}\n{new.text}",
            summary=new.summary or known.summary,
            confidence=max(known.confidence, new.confidence),
            sha256="",
        )
    )
    update_context(view.connection, seq, merged, merge_count=known.merge_count + 1)
    _rewrite(view, seq, merged, past, vector)


def _supersede(view: View, over: Superseded, new: NewContext, vector: Embedding | None) -> None:
    """Replaces outdated lines; title and summary come from the new text."""
    known = read_context(view.connection, over.seq)
    _, past = contents_of(view.connection, over.seq)
    text = "\n".join((*over.standing, new.text))
    now = time.time() if new.event_time is None else new.event_time
    changed = normalized(replace(_join(known, new), text=text, event_time=now, sha256=""))
    update_context(view.connection, over.seq, changed, merge_count=known.merge_count)
    _rewrite(view, over.seq, changed, [*over.former(now), *past], vector)


def _rewrite(
    view: View, seq: int, changed: NewContext, past: Sequence[str], vector: Embedding | None
) -> None:
    if changed.memory_layer == MemoryLayer.IMPORTANT:
        raise_layer(view.connection, seq)
    chunks = [*prepare(changed), *former_chunks(changed, past)]
    chunk_seqs = replace_text(view, seq, chunks, changed.entities)
    if vector is not None:
        # A stand-in until the new text is embedded, so that it can be found and merged into at
        # once.
        keep_vector(view.connection, chunk_seqs[0], vector)


def _merge_targets(view: View, new: NewContext) -> Where:
    """Returns the condition for knowledge that may be merged into."""
    own = view.own("x")
    kind = _A_FACT if new.memory_layer else _NO_MEMORY
    return Where(
        f"{own.sql} AND x.context_type = ? AND {kind}",
        (*own.values, ContextType.KNOWLEDGE),
        narrows=True,
    )


def _find_near(
    connection: sqlite3.Connection, near: Mapping[int, float], new: NewContext
) -> tuple[int, float] | None:
    for chunk_seq, alike in near.items():
        seq, length = connection.execute(
            "SELECT context_seq, (SELECT sum(length(content)) FROM chunks s"
            " WHERE s.context_seq = c.context_seq) FROM chunks c WHERE c.seq = ?",
            (chunk_seq,),
        ).fetchone()
        if length + len(new.text) > MAX_MERGED_CHARS:
            continue
        known = contents_of(connection, seq)[0]
        if any(can_say_the_same(new.text, each) for each in {known, *known.split("\n")}):
            return int(seq), alike
    return None


def _join(known: Context, new: NewContext) -> NewContext:
    """Returns the new piece with the attributes of the known one it joins."""
    return replace(
        new,
        keywords=(*known.keywords, *new.keywords),
        entities=(*known.entities, *new.entities),
        importance=max(known.importance, new.importance),
        event_time=known.event_time if new.event_time is None else new.event_time,
        metadata={**known.metadata, **new.metadata},
        raw_type=known.raw_type or new.raw_type,
        raw_id=known.raw_id or new.raw_id,
    )


def _normalize(text: str) -> str:
    return " ".join(text.split()).casefold()

"""Reads, replaces and deletes contexts; each call is bound to one identity."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import fields

from storage.contexts.filters import compile_filter
from storage.contexts.ingestion import (
    PreparedChunk,
    as_json,
    insert_chunks,
    insert_context,
    insert_mentions,
    replace_text,
)
from storage.database import Database, View, Where, identity_clause, identity_of, update_row
from storage.errors import ContextNotFoundError, DocumentNotFoundError
from storage.memory.entries import linked_entries, restore_links
from storage.models import Chunk, Context, ContextType, Identity, NewContext, SearchFilter

_CHUNK_COLUMNS = ("position", "start", "heading", "content")
_COLUMNS = (
    "x.*, (SELECT p.id FROM contexts p WHERE p.seq = x.parent_seq) AS parent_id,"
    " (SELECT count(*) FROM chunks n WHERE n.context_seq = x.seq) AS chunk_count,"
    " coalesce((SELECT m.layer FROM memories m WHERE m.context_seq = x.seq), 0) AS memory_layer"
)
_PLAIN_COLUMNS = [
    field.name
    for field in fields(Context)
    if field.name
    not in {"context_type", "identity", "keywords", "entities", "metadata", "parent_id"}
]
_LAST = 2**63 - 1  # the greatest seq that SQLite can have
_IS_DOCUMENT = f"x.context_type = '{ContextType.DOCUMENT}'"


class ContextRepository:
    """Stores contexts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def replace_document(
        self, identity: Identity, new: NewContext, chunks: Sequence[PreparedChunk]
    ) -> tuple[Context, bool]:
        """Stores a document; returns it, and whether it replaced an earlier version."""
        now = time.time()
        with self._database.write() as connection:
            view = View(connection, identity)
            earlier = _find_document(view, new.raw_type, new.raw_id)
            linked = [] if earlier is None else linked_entries(connection, earlier["seq"])
            if earlier is not None:
                delete_contexts(connection, [earlier["seq"]])
            created = now if earlier is None else earlier["create_time"]
            seq, _ = insert_whole(view, new, chunks, now, created)
            restore_links(connection, linked, seq)
            return read_context(connection, seq), earlier is not None

    def append(
        self, identity: Identity, new: NewContext, chunks: Sequence[PreparedChunk]
    ) -> Context:
        """Stores a new context without replacing any."""
        with self._database.write() as connection:
            seq, _ = insert_whole(View(connection, identity), new, chunks, time.time())
            return read_context(connection, seq)

    def find_document(self, identity: Identity, raw_type: str, raw_id: str) -> Context | None:
        """Returns the document of exactly this identity, or None."""
        with self._database.read() as connection:
            row = _find_document(View(connection, identity), raw_type, raw_id)
        return None if row is None else _context(row)

    def get(self, identity: Identity, context_id: str) -> tuple[Context, list[Chunk]]:
        """Returns a context and its chunks in order."""
        owner = identity_clause(identity, "x")
        with self._database.read() as connection:
            row = connection.execute(
                f"SELECT {_COLUMNS} FROM contexts x WHERE {owner.sql} AND x.id = ?",
                (*owner.values, context_id),
            ).fetchone()
            if row is None:
                raise ContextNotFoundError(
                    f"No context with id {context_id!r} is stored for user {identity.user_id!r}.",
                    suggestions=("Take the id from a search or a listing.",),
                )
            return _context(row), chunks_of(connection, row["seq"])

    def get_document(
        self, identity: Identity, raw_type: str, raw_id: str
    ) -> tuple[Context, list[Chunk]]:
        """Returns a document and its chunks in order."""
        with self._database.read() as connection:
            row = _visible_documents(View(connection, identity), raw_type, raw_id)[0]
            return _context(row), chunks_of(connection, row["seq"])

    def delete_document(self, identity: Identity, raw_type: str, raw_id: str) -> int:
        """Deletes a document from the record and, through its queue, from every index.

        If the identity sees several under that source, from several devices or agents, all are
        deleted: a deleted document must not be found again. Returns the number of deleted chunks.
        """
        with self._database.write() as connection:
            rows = _visible_documents(View(connection, identity), raw_type, raw_id)
            delete_contexts(connection, [row["seq"] for row in rows])
        return sum(row["chunk_count"] for row in rows)

    def delete(self, identity: Identity, context_ids: Sequence[str]) -> int:
        """Deletes contexts from the record and every index, and returns how many.

        Unknown ids are ignored. Cards stay: they are deleted with their profile or entity.
        """
        if not context_ids:
            return 0
        criteria = SearchFilter(ids=tuple(context_ids))
        return len(self.delete_some(identity, criteria))

    def delete_some(
        self, identity: Identity, criteria: SearchFilter, up_to: int = _LAST, limit: int = -1
    ) -> list[ContextType]:
        """Deletes the oldest contexts that match, up to a seq; returns the type of each."""
        where = compile_filter(identity, criteria)
        with self._database.write() as connection:
            rows = connection.execute(
                f"SELECT x.seq, x.context_type FROM contexts x WHERE {where.sql} AND x.seq <= ?"
                " ORDER BY x.seq LIMIT ?",
                (*where.values, up_to, limit),
            ).fetchall()
            delete_contexts(connection, [row["seq"] for row in rows])
        return [ContextType(row["context_type"]) for row in rows]

    def last_seq(self, identity: Identity, criteria: SearchFilter) -> int:
        """Returns the seq of the last stored context that matches a filter; 0 if there is none."""
        where = compile_filter(identity, criteria)
        found = f"SELECT max(x.seq) FROM contexts x WHERE {where.sql}"
        return int(self._database.rows(found, where.values)[0][0] or 0)

    def newest(
        self, identity: Identity, criteria: SearchFilter, limit: int, offset: int = 0
    ) -> list[Context]:
        """Returns contexts that match a filter, newest first."""
        where = compile_filter(identity, criteria)
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM contexts x WHERE {where.sql}"
            " ORDER BY x.update_time DESC, x.seq DESC LIMIT ? OFFSET ?",
            (*where.values, limit, offset),
        )
        return [_context(row) for row in rows]

    def openings(self, contexts: Iterable[Context]) -> dict[str, str]:
        """Returns the first chunk of each context, by its id; deleted contexts are left out."""
        rows = self._database.rows(
            "SELECT x.id, c.content FROM contexts x JOIN chunks c ON c.context_seq = x.seq"
            " WHERE x.id IN (SELECT value FROM json_each(?)) AND c.position = 0",
            (json.dumps([context.id for context in contexts]),),
        )
        return {row[0]: row[1] for row in rows}

    def count(self, identity: Identity, criteria: SearchFilter) -> int:
        """Returns the number of contexts that match a filter."""
        where = compile_filter(identity, criteria)
        found = f"SELECT count(*) FROM contexts x WHERE {where.sql}"
        return int(self._database.rows(found, where.values)[0][0])

    def count_kinds(self, identity: Identity, criteria: SearchFilter) -> dict[ContextType, int]:
        """Returns the number of contexts of each type that match a filter."""
        where = compile_filter(identity, criteria)
        rows = self._database.rows(
            f"SELECT x.context_type, count(*) FROM contexts x WHERE {where.sql}"
            " GROUP BY x.context_type ORDER BY x.context_type",
            where.values,
        )
        return {ContextType(row[0]): int(row[1]) for row in rows}


def insert_whole(
    view: View,
    new: NewContext,
    chunks: Sequence[PreparedChunk],
    update_time: float,
    create_time: float | None = None,
) -> tuple[int, list[int]]:
    """Adds a context with chunks and mentions; returns its seq and those of its chunks."""
    created = update_time if create_time is None else create_time
    seq = insert_context(view, new, create_time=created, update_time=update_time)
    chunk_seqs = insert_chunks(view, seq, chunks, one_of_many=new.one_of_many)
    insert_mentions(view, seq, new.entities)
    return seq, chunk_seqs


def update_context(
    connection: sqlite3.Connection, seq: int, changed: NewContext, *, merge_count: int
) -> None:
    """Updates the columns of a context; the caller updates its chunks and mentions."""
    taken = ("title", "summary", "confidence", "importance", "raw_type", "raw_id", "sha256")
    row = {name: getattr(changed, name) for name in (*taken, "event_time")} | {
        "keywords": as_json(changed.keywords),
        "entities": as_json(changed.entities),
        "metadata": as_json(dict(changed.metadata)),
        "update_time": time.time(),
        "merge_count": merge_count,
    }
    update_row(connection, "contexts", row, {"seq": seq})


def rewrite_context(
    view: View, seq: int, changed: NewContext, chunks: Sequence[PreparedChunk]
) -> None:
    """Writes a generated context over its earlier version."""
    update_context(view.connection, seq, changed, merge_count=0)
    replace_text(view, seq, chunks, changed.entities)


def read_context(connection: sqlite3.Connection, seq: int) -> Context:
    """Returns the context with this seq, which must exist."""
    return _context(
        connection.execute(f"SELECT {_COLUMNS} FROM contexts x WHERE x.seq = ?", (seq,)).fetchone()
    )


def newest_chunks(connection: sqlite3.Connection, where: Where, limit: int) -> list[int]:
    """Returns the chunks of the newest contexts under a condition, each context's in order."""
    rows = connection.execute(
        "SELECT c.seq FROM contexts x JOIN chunks c ON c.context_seq = x.seq"
        f" WHERE {where.sql} ORDER BY x.update_time DESC, x.seq DESC, c.position LIMIT ?",
        (*where.values, limit),
    )
    return [int(row[0]) for row in rows]


def load_chunks(
    connection: sqlite3.Connection, seqs: Iterable[int]
) -> dict[int, tuple[Chunk, Context]]:
    """Returns chunks with their contexts, by the chunk's seq."""
    rows = connection.execute(
        f"SELECT {_COLUMNS}, c.seq AS chunk_seq, c.position, c.start, c.heading, c.content"
        " FROM chunks c JOIN contexts x ON x.seq = c.context_seq"
        " WHERE c.seq IN (SELECT value FROM json_each(?))",
        (json.dumps(list(seqs)),),
    )
    return {row["chunk_seq"]: (_chunk(row), _context(row)) for row in rows}


def delete_contexts(connection: sqlite3.Connection, seqs: Iterable[int]) -> None:
    """Deletes contexts by their seqs."""
    connection.executemany("DELETE FROM contexts WHERE seq = ?", ((seq,) for seq in seqs))


def _find_document(view: View, raw_type: str, raw_id: str) -> sqlite3.Row | None:
    own = view.own("x")
    return view.row(
        f"SELECT {_COLUMNS} FROM contexts x WHERE {own.sql} AND x.raw_type = ? AND x.raw_id = ?"
        f" AND {_IS_DOCUMENT}",
        (*own.values, raw_type, raw_id),
    )


def _visible_documents(view: View, raw_type: str, raw_id: str) -> list[sqlite3.Row]:
    """Returns the documents that the identity sees under a source, newest first; never empty."""
    owner = view.seen("x")
    rows = view.rows(
        f"SELECT {_COLUMNS} FROM contexts x WHERE {owner.sql} AND x.raw_type = ? AND x.raw_id = ?"
        f" AND {_IS_DOCUMENT} ORDER BY x.update_time DESC, x.seq DESC",
        (*owner.values, raw_type, raw_id),
    )
    if not rows:
        raise DocumentNotFoundError(
            f"No document with raw_type {raw_type!r} and raw_id {raw_id!r} is stored for user"
            f" {view.user_id!r}.",
            suggestions=("List the documents with retrieve_document_context without a query.",),
        )
    return rows


def chunks_of(connection: sqlite3.Connection, context_seq: int) -> list[Chunk]:
    """Returns the chunks of a context in order."""
    rows = connection.execute(
        f"SELECT {', '.join(_CHUNK_COLUMNS)} FROM chunks WHERE context_seq = ? ORDER BY position",
        (context_seq,),
    )
    return [_chunk(row) for row in rows]


def _chunk(row: sqlite3.Row) -> Chunk:
    return Chunk(*(row[column] for column in _CHUNK_COLUMNS))


def _context(row: sqlite3.Row) -> Context:
    return Context(
        **{name: row[name] for name in _PLAIN_COLUMNS},
        context_type=ContextType(row["context_type"]),
        identity=identity_of(row),
        keywords=tuple(json.loads(row["keywords"])),
        entities=tuple(json.loads(row["entities"])),
        metadata=json.loads(row["metadata"]),
        parent_id=row["parent_id"] or "",
    )

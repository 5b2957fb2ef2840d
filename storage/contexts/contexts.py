"""Reads, replaces and deletes contexts; each call is bound to one identity."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Sequence

from storage.contexts.filters import compile_filter
from storage.contexts.ingestion import (
    PreparedChunk,
    as_json,
    insert_chunks,
    insert_context,
    insert_mentions,
)
from storage.database import Database, Where, exactly, identity_clause
from storage.errors import ContextNotFoundError, DocumentNotFoundError
from storage.memory.entries import keep_told, told_of
from storage.models import Chunk, Context, ContextType, Identity, NewContext, SearchFilter

_CHUNK_COLUMNS = ("position", "start", "heading", "content")
_COLUMNS = (
    "x.*, (SELECT p.id FROM contexts p WHERE p.seq = x.parent_seq) AS parent_id,"
    " (SELECT count(*) FROM chunks n WHERE n.context_seq = x.seq) AS chunk_count,"
    " coalesce((SELECT m.layer FROM memories m WHERE m.context_seq = x.seq), 0) AS memory_layer"
)
_IS_DOCUMENT = f"x.context_type = '{ContextType.DOCUMENT}'"


class ContextRepository:
    """Stores contexts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def replace_document(
        self, identity: Identity, new: NewContext, chunks: Sequence[PreparedChunk]
    ) -> tuple[Context, bool]:
        """Stores a document in place of its earlier version, in one transaction.

        Returns the stored document, and whether it replaced an earlier version.
        """
        now = time.time()
        with self._database.write() as connection:
            earlier = _find_document(connection, identity, new.raw_type, new.raw_id)
            told = [] if earlier is None else told_of(connection, earlier["seq"])
            if earlier is not None:
                _delete(connection, [earlier["seq"]])
            created = now if earlier is None else earlier["create_time"]
            seq, _ = insert_whole(connection, identity, new, chunks, now, created)
            keep_told(connection, told, seq)
            return read_context(connection, seq), earlier is not None

    def append(
        self, identity: Identity, new: NewContext, chunks: Sequence[PreparedChunk]
    ) -> Context:
        """Stores a new context without replacing any."""
        now = time.time()
        with self._database.write() as connection:
            seq, _ = insert_whole(connection, identity, new, chunks, now)
            return read_context(connection, seq)

    def find_document(self, identity: Identity, raw_type: str, raw_id: str) -> Context | None:
        """Returns the document of exactly this identity, or None."""
        with self._database.read() as connection:
            row = _find_document(connection, identity, raw_type, raw_id)
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
            row = _visible_documents(connection, identity, raw_type, raw_id)[0]
            return _context(row), chunks_of(connection, row["seq"])

    def delete_document(self, identity: Identity, raw_type: str, raw_id: str) -> int:
        """Deletes a document from the record and, through its queue, from every index.

        If the identity sees several under that source, from several devices or agents, all are
        deleted: a deleted document must not be found again. Returns the number of deleted chunks.
        """
        with self._database.write() as connection:
            rows = _visible_documents(connection, identity, raw_type, raw_id)
            _delete(connection, [row["seq"] for row in rows])
        return sum(row["chunk_count"] for row in rows)

    def delete(self, identity: Identity, context_ids: Sequence[str]) -> int:
        """Deletes contexts from the record and every index; unknown ids are ignored.

        Cards stay: they are deleted with their profile or entity.
        """
        if not context_ids:
            return 0
        where = compile_filter(identity, SearchFilter(ids=tuple(context_ids)))
        with self._database.write() as connection:
            rows = connection.execute(
                f"SELECT x.seq FROM contexts x WHERE {where.sql}", where.values
            ).fetchall()
            _delete(connection, [row["seq"] for row in rows])
        return len(rows)

    def delete_some(
        self, identity: Identity, criteria: SearchFilter, up_to: int, limit: int
    ) -> list[ContextType]:
        """Deletes the oldest contexts that match a filter.

        At most `limit` with a seq of at most `up_to` are deleted. Returns the type of each.
        """
        where = compile_filter(identity, criteria)
        with self._database.write() as connection:
            rows = connection.execute(
                f"SELECT x.seq, x.context_type FROM contexts x WHERE {where.sql} AND x.seq <= ?"
                " ORDER BY x.seq LIMIT ?",
                (*where.values, up_to, limit),
            ).fetchall()
            _delete(connection, [row["seq"] for row in rows])
        return [ContextType(row["context_type"]) for row in rows]

    def last_seq(self, identity: Identity, criteria: SearchFilter) -> int:
        """Returns the seq of the last stored context that matches a filter; 0 if there is none."""
        where = compile_filter(identity, criteria)
        with self._database.read() as connection:
            row = connection.execute(
                f"SELECT max(x.seq) FROM contexts x WHERE {where.sql}", where.values
            ).fetchone()
        return int(row[0] or 0)

    def newest(
        self, identity: Identity, criteria: SearchFilter, limit: int, offset: int = 0
    ) -> list[Context]:
        """Returns contexts that match a filter, newest first."""
        where = compile_filter(identity, criteria)
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT {_COLUMNS} FROM contexts x WHERE {where.sql}"
                " ORDER BY x.update_time DESC, x.seq DESC LIMIT ? OFFSET ?",
                (*where.values, limit, offset),
            ).fetchall()
        return [_context(row) for row in rows]

    def openings(self, contexts: Iterable[Context]) -> dict[str, str]:
        """Returns the first chunk of each context, by its id; deleted contexts are left out."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT x.id, c.content FROM contexts x JOIN chunks c ON c.context_seq = x.seq"
                " WHERE x.id IN (SELECT value FROM json_each(?)) AND c.position = 0",
                (json.dumps([context.id for context in contexts]),),
            )
            return {row[0]: row[1] for row in rows}

    def count(self, identity: Identity, criteria: SearchFilter) -> int:
        """Returns the number of contexts that match a filter."""
        where = compile_filter(identity, criteria)
        with self._database.read() as connection:
            row = connection.execute(
                f"SELECT count(*) FROM contexts x WHERE {where.sql}", where.values
            ).fetchone()
        return int(row[0])

    def count_kinds(self, identity: Identity, criteria: SearchFilter) -> dict[ContextType, int]:
        """Returns the number of contexts of each type that match a filter."""
        where = compile_filter(identity, criteria)
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT x.context_type, count(*) FROM contexts x WHERE {where.sql}"
                " GROUP BY x.context_type ORDER BY x.context_type",
                where.values,
            )
            return {ContextType(row[0]): int(row[1]) for row in rows}


def insert_whole(  # noqa: PLR0913, PLR0917  # a context, its text, and when
    connection: sqlite3.Connection,
    identity: Identity,
    new: NewContext,
    chunks: Sequence[PreparedChunk],
    update_time: float,
    create_time: float | None = None,
) -> tuple[int, list[int]]:
    """Adds a context with its chunks and mentions, in the caller's transaction.

    Returns its seq, and those of its chunks.
    """
    created = update_time if create_time is None else create_time
    seq = insert_context(connection, identity, new, create_time=created, update_time=update_time)
    chunk_seqs = insert_chunks(
        connection, seq, identity.user_id, chunks, one_of_many=new.one_of_many
    )
    insert_mentions(connection, seq, identity.user_id, new.entities)
    return seq, chunk_seqs


def update_context(
    connection: sqlite3.Connection, seq: int, changed: NewContext, *, merge_count: int
) -> None:
    """Updates the columns of a context; the caller updates its chunks and mentions."""
    connection.execute(
        "UPDATE contexts SET title = ?, summary = ?, keywords = ?, entities = ?, metadata = ?,"
        " confidence = ?, importance = ?, update_time = ?, event_time = ?, raw_type = ?,"
        " raw_id = ?, sha256 = ?, merge_count = ? WHERE seq = ?",
        (
            changed.title,
            changed.summary,
            as_json(changed.keywords),
            as_json(changed.entities),
            as_json(dict(changed.metadata)),
            changed.confidence,
            changed.importance,
            time.time(),
            changed.event_time,
            changed.raw_type,
            changed.raw_id,
            changed.sha256,
            merge_count,
            seq,
        ),
    )


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


def _find_document(
    connection: sqlite3.Connection, identity: Identity, raw_type: str, raw_id: str
) -> sqlite3.Row | None:
    owner = exactly(identity, "x")
    row: sqlite3.Row | None = connection.execute(
        f"SELECT {_COLUMNS} FROM contexts x WHERE {owner.sql} AND x.raw_type = ? AND x.raw_id = ?"
        f" AND {_IS_DOCUMENT}",
        (*owner.values, raw_type, raw_id),
    ).fetchone()
    return row


def _visible_documents(
    connection: sqlite3.Connection, identity: Identity, raw_type: str, raw_id: str
) -> list[sqlite3.Row]:
    """Returns the documents that the identity sees under a source, newest first; never empty."""
    owner = identity_clause(identity, "x")
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM contexts x WHERE {owner.sql} AND x.raw_type = ? AND x.raw_id = ?"
        f" AND {_IS_DOCUMENT} ORDER BY x.update_time DESC, x.seq DESC",
        (*owner.values, raw_type, raw_id),
    ).fetchall()
    if not rows:
        raise DocumentNotFoundError(
            f"No document with raw_type {raw_type!r} and raw_id {raw_id!r} is stored for user"
            f" {identity.user_id!r}.",
            suggestions=("List the documents with retrieve_document_context without a query.",),
        )
    return rows


def _delete(connection: sqlite3.Connection, seqs: Iterable[int]) -> None:
    connection.executemany("DELETE FROM contexts WHERE seq = ?", ((seq,) for seq in seqs))


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
        id=row["id"],
        context_type=ContextType(row["context_type"]),
        identity=Identity(row["user_id"], row["device_id"], row["agent_id"]),
        raw_type=row["raw_type"],
        raw_id=row["raw_id"],
        title=row["title"],
        summary=row["summary"],
        keywords=tuple(json.loads(row["keywords"])),
        entities=tuple(json.loads(row["entities"])),
        confidence=row["confidence"],
        importance=row["importance"],
        create_time=row["create_time"],
        update_time=row["update_time"],
        event_time=row["event_time"],
        metadata=json.loads(row["metadata"]),
        media_type=row["media_type"],
        file_path=row["file_path"],
        sha256=row["sha256"],
        merge_count=row["merge_count"],
        hierarchy_level=row["hierarchy_level"],
        time_bucket=row["time_bucket"],
        parent_id=row["parent_id"] or "",
        chunk_count=row["chunk_count"],
        memory_layer=row["memory_layer"],
    )

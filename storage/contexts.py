"""The repository of contexts: documents, their chunks, and what is said of them."""

from __future__ import annotations

import json
import sqlite3
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from storage import lexical
from storage.database import Database
from storage.errors import DocumentNotFoundError
from storage.filters import Where, identity_clause
from storage.models import Chunk, ContextType, Document, Identity, NewDocument

__all__ = ["ContextRepository", "PreparedChunk"]

_CHUNK_COLUMNS = ("id", "position", "start", "heading", "content")
_DOCUMENT_COLUMNS = (
    "d.*, (SELECT count(*) FROM contexts n WHERE n.document_seq = d.seq) AS chunk_count"
)


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk ready to be stored.

    Attributes:
        heading: The headings it stands under.
        content: Its text.
        start: Where the text begins in the document's.
        title_terms: Terms of the document's title and the headings.
        body_terms: Terms of the text.
    """

    heading: str
    content: str
    start: int
    title_terms: tuple[str, ...]
    body_terms: tuple[str, ...]


class ContextRepository:
    """Reads and writes contexts, each call bound to one identity.

    Args:
        database: The record.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def replace_document(
        self,
        identity: Identity,
        document: NewDocument,
        chunks: Sequence[PreparedChunk],
        mentions: Sequence[tuple[str, str]],
    ) -> tuple[Document, bool]:
        """Stores a document in place of its earlier version, in one transaction.

        Args:
            identity: Whose document; (raw_type, raw_id) is unique within it.
            document: The source.
            chunks: Its pieces, in order.
            mentions: (folded, as written) names that each chunk is found by.

        Returns:
            The document as stored, and whether it took an earlier version's place.
        """
        now = time.time()
        with self._database.write() as connection:
            earlier = connection.execute(
                "SELECT seq, create_time FROM documents WHERE user_id = ? AND device_id = ?"
                " AND agent_id = ? AND raw_type = ? AND raw_id = ?",
                (*_key(identity), document.raw_type, document.raw_id),
            ).fetchone()
            create_time = now
            if earlier is not None:
                create_time = earlier["create_time"]
                _delete_documents(connection, [earlier["seq"]])
            document_seq = _insert_document(connection, identity, document, create_time, now)
            seqs = _insert_contexts(connection, document_seq, chunks)
            lexical.add_terms(
                connection,
                (
                    (seq, chunk.title_terms, chunk.body_terms)
                    for seq, chunk in zip(seqs, chunks, strict=True)
                ),
            )
            connection.executemany(
                "INSERT OR IGNORE INTO mentions (folded, context_seq, name) VALUES (?, ?, ?)",
                ((folded, seq, name) for seq in seqs for folded, name in mentions),
            )
            connection.executemany(
                "INSERT INTO embed_queue (context_seq) VALUES (?)", ((seq,) for seq in seqs)
            )
            stored = connection.execute(
                f"SELECT {_DOCUMENT_COLUMNS} FROM documents d WHERE d.seq = ?", (document_seq,)
            ).fetchone()
        return _document(stored), earlier is not None

    def find_document(self, identity: Identity, raw_type: str, raw_id: str) -> Document | None:
        """The document under exactly this identity, or None."""
        with self._database.read() as connection:
            row = connection.execute(
                f"SELECT {_DOCUMENT_COLUMNS} FROM documents d WHERE d.user_id = ?"
                " AND d.device_id = ? AND d.agent_id = ? AND d.raw_type = ? AND d.raw_id = ?",
                (*_key(identity), raw_type, raw_id),
            ).fetchone()
        return None if row is None else _document(row)

    def get_document(
        self, identity: Identity, raw_type: str, raw_id: str
    ) -> tuple[Document, list[Chunk]]:
        """A document and its chunks in order.

        Raises:
            DocumentNotFoundError: If the identity has no such document.
        """
        with self._database.read() as connection:
            row = _find_documents(connection, identity, raw_type, raw_id)[0]
            chunks = connection.execute(
                f"SELECT {', '.join(_CHUNK_COLUMNS)} FROM contexts"
                " WHERE document_seq = ? ORDER BY position",
                (row["seq"],),
            ).fetchall()
        return _document(row), [Chunk(*chunk) for chunk in chunks]

    def delete_document(self, identity: Identity, raw_type: str, raw_id: str) -> int:
        """Deletes a document from the record and, by way of its queue, from every index.

        Where the identity sees several under that source, of several devices or agents, all go:
        what was deleted is not found again.

        Returns:
            How many chunks went.

        Raises:
            DocumentNotFoundError: If the identity has no such document.
        """
        with self._database.write() as connection:
            rows = _find_documents(connection, identity, raw_type, raw_id)
            _delete_documents(connection, [row["seq"] for row in rows])
        return sum(row["chunk_count"] for row in rows)

    def documents(self, identity: Identity, limit: int, offset: int = 0) -> list[Document]:
        """Documents, newest first."""
        whose = identity_clause(identity, "d")
        with self._database.read() as connection:
            rows = connection.execute(
                f"SELECT {_DOCUMENT_COLUMNS} FROM documents d WHERE {whose.sql}"
                " ORDER BY d.update_time DESC, d.seq DESC LIMIT ? OFFSET ?",
                (*whose.values, limit, offset),
            ).fetchall()
        return [_document(row) for row in rows]

    def known_names(self, identity: Identity) -> list[str]:
        """Every name that the identity's contexts mention."""
        whose = identity_clause(identity, "c")
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT DISTINCT m.name FROM mentions m"
                f" JOIN contexts c ON c.seq = m.context_seq WHERE {whose.sql} ORDER BY m.name",
                whose.values,
            ).fetchall()
        return [str(row[0]) for row in rows]


def newest_contexts(connection: sqlite3.Connection, where: Where, limit: int) -> list[int]:
    """The newest contexts under a condition, those of one document in its order."""
    rows = connection.execute(
        "SELECT c.seq FROM contexts c JOIN documents d ON d.seq = c.document_seq"
        f" WHERE {where.sql} ORDER BY c.update_time DESC, d.seq DESC, c.position LIMIT ?",
        (*where.values, limit),
    )
    return [int(row[0]) for row in rows]


def load_contexts(
    connection: sqlite3.Connection, seqs: Iterable[int]
) -> dict[int, tuple[ContextType, Chunk, Document]]:
    """Contexts with their documents: seq → (type, chunk, document)."""
    rows = connection.execute(
        f"SELECT {_DOCUMENT_COLUMNS}, c.seq AS context_seq, c.context_type, c.id, c.position,"
        " c.start, c.heading, c.content FROM contexts c JOIN documents d ON d.seq = c.document_seq"
        " WHERE c.seq IN (SELECT value FROM json_each(?))",
        (json.dumps(list(seqs)),),
    )
    return {
        row["context_seq"]: (
            ContextType(row["context_type"]),
            Chunk(*(row[column] for column in _CHUNK_COLUMNS)),
            _document(row),
        )
        for row in rows
    }


def _key(identity: Identity) -> tuple[str, str, str]:
    return identity.user_id, identity.device_id, identity.agent_id


def _find_documents(
    connection: sqlite3.Connection, identity: Identity, raw_type: str, raw_id: str
) -> list[sqlite3.Row]:
    """What the identity sees under a source, newest first; never empty."""
    whose = identity_clause(identity, "d")
    rows = connection.execute(
        f"SELECT {_DOCUMENT_COLUMNS} FROM documents d WHERE {whose.sql}"
        " AND d.raw_type = ? AND d.raw_id = ? ORDER BY d.update_time DESC, d.seq DESC",
        (*whose.values, raw_type, raw_id),
    ).fetchall()
    if not rows:
        raise DocumentNotFoundError(
            f"No document with raw_type {raw_type!r} and raw_id {raw_id!r} is stored for user"
            f" {identity.user_id!r}.",
            suggestions=("List the documents with retrieve_document_context without a query.",),
        )
    return rows


def _delete_documents(connection: sqlite3.Connection, seqs: Sequence[int]) -> None:
    connection.executemany("DELETE FROM documents WHERE seq = ?", ((seq,) for seq in seqs))


def _insert_document(
    connection: sqlite3.Connection,
    identity: Identity,
    document: NewDocument,
    create_time: float,
    update_time: float,
) -> int:
    cursor = connection.execute(
        "INSERT INTO documents (user_id, device_id, agent_id, raw_type, raw_id, title, media_type,"
        " file_path, sha256, create_time, update_time, event_time, entities, metadata)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *_key(identity),
            document.raw_type,
            document.raw_id,
            document.title,
            document.media_type,
            document.file_path,
            document.sha256,
            create_time,
            update_time,
            update_time if document.event_time is None else document.event_time,
            json.dumps(list(document.entities), ensure_ascii=False),
            json.dumps(dict(document.metadata), ensure_ascii=False, sort_keys=True),
        ),
    )
    return int(cursor.lastrowid or 0)


def _insert_contexts(
    connection: sqlite3.Connection, document_seq: int, chunks: Sequence[PreparedChunk]
) -> list[int]:
    return [
        int(
            connection.execute(
                "INSERT INTO contexts (id, context_type, document_seq, position, start, heading,"
                " content, user_id, device_id, agent_id, create_time, update_time, event_time)"
                " SELECT ?, ?, seq, ?, ?, ?, ?, user_id, device_id, agent_id, create_time,"
                " update_time, event_time FROM documents WHERE seq = ? RETURNING seq",
                (
                    uuid.uuid4().hex,
                    ContextType.DOCUMENT,
                    position,
                    chunk.start,
                    chunk.heading,
                    chunk.content,
                    document_seq,
                ),
            ).fetchone()[0]
        )
        for position, chunk in enumerate(chunks)
    ]


def _document(row: sqlite3.Row) -> Document:
    return Document(
        raw_type=row["raw_type"],
        raw_id=row["raw_id"],
        title=row["title"],
        media_type=row["media_type"],
        file_path=row["file_path"],
        sha256=row["sha256"],
        create_time=row["create_time"],
        update_time=row["update_time"],
        event_time=row["event_time"],
        entities=tuple(json.loads(row["entities"])),
        metadata=json.loads(row["metadata"]),
        chunk_count=row["chunk_count"],
    )

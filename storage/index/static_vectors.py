"""Static vectors: each chunk of an import gets a rough vector within seconds.

A static embedder is many times faster than the model. By its vectors, which are in the record,
chunks are found until their own are stored. One ranking mixes cosines of both kinds. For questions
and texts on three subjects, static cosines had nearly the same mean, spread and maximum as those of
the bundled model. Texts in scripts that the static embedder does not understand get none.
"""

from __future__ import annotations

import logging
import sqlite3
from dataclasses import replace

from storage.database import Database
from storage.errors import StorageUnavailableError
from storage.index.embed_queue import Priority, take_rough
from storage.index.embedders.bundled import StaticEmbedder
from storage.index.embedding_models import Embedding, passage, understands

log = logging.getLogger("toolcrib.indexer")


def make_rough_vectors(database: Database) -> bool:
    """Makes the rough vectors of some chunks; returns False if none waits.

    If the embedder fails, the chunks wait for their own vectors without rough ones.
    """
    with database.read() as connection:
        rows = take_rough(connection)
    if not rows:
        return False
    embedder = StaticEmbedder()
    texts = {row["seq"]: passage(*row[1:]) for row in rows}
    readable = {seq: text for seq, text in texts.items() if understands(embedder, text)}
    vectors: dict[int, bytes] = {}
    try:
        made = embedder.embed_passages(list(readable.values())).astype("<f2")
        vectors = {seq: row.tobytes() for seq, row in zip(readable, made, strict=True)}
    except StorageUnavailableError as error:
        log.warning("Imports are not found before they are embedded: %s", error.message)
    with database.write() as connection:
        for seq in texts:
            _keep(connection, seq, vectors.get(seq))
    return True


def with_rough_vector(embedding: Embedding, query: str) -> Embedding:
    """Adds a rough vector to a query's embedding, if the embedder can make one."""
    embedder = StaticEmbedder()
    if not understands(embedder, query):
        return embedding
    try:
        return replace(embedding, rough=embedder.embed_query(query))
    except StorageUnavailableError:
        return embedding


def _keep(connection: sqlite3.Connection, chunk_seq: int, vector: bytes | None) -> None:
    """Queues a chunk for its own vector and stores the rough one; deleted chunks are ignored."""
    waits = connection.execute(
        "UPDATE embed_queue SET priority = ? WHERE chunk_seq = ? AND priority = ?",
        (Priority.LATER, chunk_seq, Priority.ROUGH),
    )
    if waits.rowcount and vector is not None:
        connection.execute(
            "INSERT OR REPLACE INTO rough_vectors (chunk_seq, user_id, vector)"
            " SELECT seq, user_id, ? FROM chunks WHERE seq = ?",
            (vector, chunk_seq),
        )

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
from storage.index.embedders.base import understands
from storage.index.embedders.bundled import StaticEmbedder
from storage.index.embedding_models import Embedding, passage

log = logging.getLogger("toolcrib.indexer")


class FirstPass:
    """Makes rough vectors of chunks and queries."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._embedder = StaticEmbedder()

    def step(self) -> bool:
        """Makes the rough vectors of some chunks; returns False if none waits.

        If the embedder fails, the chunks wait for their own vectors without rough ones.
        """
        with self._database.read() as connection:
            rows = take_rough(connection)
        if not rows:
            return False
        texts = {row["seq"]: passage(*row[1:]) for row in rows}
        vectors = self._vectors(
            {seq: text for seq, text in texts.items() if understands(self._embedder, text)}
        )
        with self._database.write() as connection:
            for seq in texts:
                _keep(connection, seq, vectors.get(seq))
        return True

    def of_query(self, embedding: Embedding, query: str) -> Embedding:
        """Adds a rough vector to a query's embedding, if the embedder can make one."""
        if not understands(self._embedder, query):
            return embedding
        try:
            vector = self._embedder.embed_query(query)
        except StorageUnavailableError:
            return embedding
        return replace(embedding, rough=vector)

    def _vectors(self, texts: dict[int, str]) -> dict[int, bytes]:
        try:
            vectors = self._embedder.embed_passages(list(texts.values()))
        except StorageUnavailableError as error:
            log.warning("Imports are not found before they are embedded: %s", error.message)
            return {}
        rows = vectors.astype("<f2")
        return {seq: row.tobytes() for seq, row in zip(texts, rows, strict=True)}


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

"""The indexer: turns the record's queues into vectors, in the background, a batch at a time.

It does the upkeep of the lexical index too (`storage.upkeep`).

Two queues stand in the record, so nothing is forgotten when the process dies: `embed_queue` holds
chunks without a vector, `vector_outbox` what the vector index has still to hear. A batch leaves
its queue only after its work has been done; work that was done twice leaves the same result.
"""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from storage import upkeep
from storage.database import Database
from storage.embedders.protocol import Embedder
from storage.errors import StorageError, VectorIndexError
from storage.lexical import count_chunks
from storage.locks import locked
from storage.models import Identity, IndexStatus
from storage.queues import passage, store_vector
from storage.vectors import VectorIndex

__all__ = ["Indexer", "generation"]

log = logging.getLogger("toolcrib.indexer")

EMBED_BATCH = 32
"""Texts embedded between two transactions: about a second of work."""

OUTBOX_BATCH = 1000

RETRY_SECONDS = 5.0
"""How long to wait after a failure, which rarely mends itself at once."""

IDLE_SECONDS = 1.0
"""How long to wait before looking for work that another process left behind."""

_GENERATION = "vector_generation"


class Indexer:
    """Embeds what is new and keeps the vector index up to the record.

    Of all processes on a data directory one works at a time: the holder of a file lock, which the
    system releases when its holder dies.

    Args:
        database: The record.
        embedder: Makes the vectors.
        vectors: The vector index.
        lock_path: The file whose lock the working process holds.
    """

    def __init__(
        self, database: Database, embedder: Embedder, vectors: VectorIndex, lock_path: Path
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._vectors = vectors
        self._lock_path = lock_path
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._check_wanted = False
        self._inherited = True
        self.problem = ""

    def start(self) -> None:
        """Starts working in the background."""
        self._stopping.clear()
        self._thread = threading.Thread(target=self._work, name="toolcrib-indexer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the background work after the batch under way."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def notify(self) -> None:
        """Says that there is new work."""
        self._wake.set()

    def check(self) -> None:
        """Asks for the vector index to be compared with the record, and rebuilt if they differ."""
        self._check_wanted = True
        self._wake.set()

    def consulted(self) -> None:
        """Says that the vector index is used: what earlier runs left is compared once."""
        if self._inherited:
            self.check()

    def status(self, identity: Identity) -> IndexStatus:
        """How many of the user's chunks have a vector."""
        with self._database.read() as connection:
            total = count_chunks(connection, identity.user_id)
            waiting = connection.execute(
                "SELECT count(*) FROM embed_queue WHERE user_id = ?", (identity.user_id,)
            ).fetchone()[0]
        return IndexStatus(total, total - waiting, self.problem if waiting else "")

    def step(self) -> bool:
        """Does one batch of work; False when there is none or another process is at it.

        Raises:
            StorageError: If the embedder, the vector index or the disk fails; the queues stay.
        """
        if not (self._check_wanted or self._has_work()):
            return False
        with locked(self._lock_path, wait=False) as held:
            return held and (
                upkeep.work(self._database)
                or self._embed_batch()
                or self._deliver_batch()
                or self._verify()
            )

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            try:
                worked = self.step()
                self.problem = ""
            except StorageError as error:
                log.warning("Indexing waits: %s", error.message)
                self.problem, worked = error.message, False
            except Exception:
                log.exception("Indexing failed")
                self.problem, worked = "internal failure, see the log", False
            if self.problem:
                self._stopping.wait(RETRY_SECONDS)
            elif not worked:
                self._wake.wait(IDLE_SECONDS)

    def _has_work(self) -> bool:
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT EXISTS (SELECT 1 FROM embed_queue) OR EXISTS (SELECT 1 FROM vector_outbox)"
            ).fetchone()
            return bool(row[0]) or upkeep.has_work(connection)

    def _embed_batch(self) -> bool:
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT c.seq, x.title, c.heading, c.content FROM embed_queue q"
                " JOIN chunks c ON c.seq = q.chunk_seq"
                " JOIN contexts x ON x.seq = c.context_seq"
                " ORDER BY c.seq LIMIT ?",
                (EMBED_BATCH,),
            ).fetchall()
        if not rows:
            return False
        vectors = self._embedder.embed_passages([passage(*row[1:]) for row in rows])
        with self._database.write() as connection:
            for row, vector in zip(rows, vectors, strict=True):
                store_vector(connection, row["seq"], vector)
        return True

    def _deliver_batch(self) -> bool:
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT seq, chunk_seq, user_id FROM vector_outbox ORDER BY seq LIMIT ?",
                (OUTBOX_BATCH,),
            ).fetchall()
            self._vectors.follow(generation(connection))
        if not rows:
            return False
        users = {row["user_id"] for row in rows}
        with self._rebuilding_on_failure():
            if self._inherited:  # from an earlier run or another process, in whatever state
                self._inherited, self._check_wanted = False, True
                if not all(self._is_whole(user_id) for user_id in users):
                    self._rebuild()
                    return True
            with self._database.write() as connection:
                # Counted before the first vector too: who dies on the way has changed the index.
                self._vectors.wrote(_next_generation(connection))
            for user_id in users:
                self._deliver(user_id, [row for row in rows if row["user_id"] == user_id])
            with self._database.write() as connection:
                connection.execute("DELETE FROM vector_outbox WHERE seq <= ?", (rows[-1]["seq"],))
                self._vectors.wrote(_next_generation(connection))
        return True

    def _deliver(self, user_id: str, rows: Sequence[sqlite3.Row]) -> None:
        """Brings one user's vectors to what the record says now, whatever was queued."""
        import numpy as np  # noqa: PLC0415  # imported on first use

        touched = sorted({row["chunk_seq"] for row in rows})
        with self._database.read() as connection:
            kept = dict(
                connection.execute(
                    "SELECT chunk_seq, vector FROM embeddings"
                    " WHERE chunk_seq IN (SELECT value FROM json_each(?))",
                    (json.dumps(touched),),
                )
            )
        gone = [seq for seq in touched if seq not in kept]
        if kept:
            vectors = np.frombuffer(b"".join(kept.values()), dtype="<f4").reshape(len(kept), -1)
            self._vectors.upsert(user_id, list(kept), vectors)
        if gone:
            self._vectors.delete(user_id, gone)

    def _verify(self) -> bool:
        """Compares the vector index with the record and rebuilds it if they differ."""
        if not self._check_wanted:
            return False
        with self._database.read() as connection:
            if connection.execute("SELECT EXISTS (SELECT 1 FROM vector_outbox)").fetchone()[0]:
                return True
            counts = connection.execute(
                "SELECT c.user_id, count(*) FROM embeddings e"
                " JOIN chunks c ON c.seq = e.chunk_seq GROUP BY c.user_id"
            ).fetchall()
            self._vectors.follow(generation(connection))
        with self._rebuilding_on_failure():
            if any(
                self._vectors.count(user_id) != count or not self._is_whole(user_id)
                for user_id, count in counts
            ):
                log.warning("The vector index differs from the record: rebuilding it")
                self._rebuild()
        self._inherited = self._check_wanted = False
        return True

    def _is_whole(self, user_id: str) -> bool:
        import numpy as np  # noqa: PLC0415  # imported on first use

        return self._vectors.is_whole(user_id, np.ones(self._embedder.dimensions, dtype=np.float32))

    @contextmanager
    def _rebuilding_on_failure(self) -> Iterator[None]:
        try:
            yield
        except VectorIndexError:
            self._rebuild()
            raise

    def _rebuild(self) -> None:
        with self._database.write() as connection:
            connection.execute("DELETE FROM vector_outbox")
            connection.execute(
                "INSERT INTO vector_outbox (chunk_seq, user_id)"
                " SELECT c.seq, c.user_id FROM embeddings e"
                " JOIN chunks c ON c.seq = e.chunk_seq"
            )
            _next_generation(connection)
        self._vectors.drop()  # only now: who dies before this rebuilds again, from a full queue


def generation(connection: sqlite3.Connection) -> int:
    """How often the vector index has been written; processes compare it with what they opened."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (_GENERATION,)).fetchone()
    return 0 if row is None else int(row[0])


def _next_generation(connection: sqlite3.Connection) -> int:
    row = connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, '1')"
        " ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1 RETURNING value",
        (_GENERATION,),
    ).fetchone()
    return int(row[0])

"""Vector sync: updates the vector index from the record.

The index holds only users with more vectors than searches compare one by one
(`vector_collections`). `vector_outbox` holds the changes that it has not received. A batch leaves
it only once the index has it; delivering it twice does no harm. The state left by earlier runs or
other processes is compared with the record, and the index is rebuilt if they differ.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from storage.database import Database
from storage.errors import VectorIndexError
from storage.index.embedding_models import Model, live_models
from storage.index.lexical import count_chunks
from storage.index.vectors import Place, VectorIndex

log = logging.getLogger("toolcrib.indexer")
# Up to this many vectors of a user are compared one by one: exact, and faster than the index.
EXACT_LIMIT = 2000
OUTBOX_BATCH = 200  # other calls wait for it: Chroma holds the interpreter lock while it writes
_GENERATION = "vector_generation"


class VectorSync:
    """Delivers changes from the record to the vector index, under the indexer's lock."""

    def __init__(self, database: Database, vectors: VectorIndex) -> None:
        self._database = database
        self._vectors = vectors
        self._inherited = True
        self.check_wanted = False

    def consulted(self) -> bool:
        """Signals that the index is used; returns whether its state is still unchecked."""
        if self._inherited:
            self.check_wanted = True
        return self._inherited

    def is_due(self, connection: sqlite3.Connection) -> bool:
        """Returns whether a user's collection must be begun or dropped."""
        return any(_changed_places(connection))

    def settle(self) -> bool:
        """Begins or drops the collections of users who crossed the limit; False if none did.

        A new one is filled by `deliver`.
        """
        with self._database.read() as connection:
            crowded, sparse = _changed_places(connection)
        if crowded:
            with self._database.write() as connection:
                connection.executemany(
                    "INSERT OR IGNORE INTO vector_collections (model_seq, user_id) VALUES (?, ?)",
                    crowded,
                )
                _queue_vectors(connection, crowded)
        self._drop(sparse)
        return bool(crowded or sparse)

    def deliver(self, model: Model) -> bool:
        """Delivers one batch of a model's changes; returns False if there is none."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT seq, chunk_seq, user_id FROM vector_outbox"
                " WHERE model_seq = ? ORDER BY seq LIMIT ?",
                (model.seq, OUTBOX_BATCH),
            ).fetchall()
            self._vectors.follow(generation(connection))
        if not rows:
            return False
        places: dict[str, set[int]] = {}
        for row in rows:
            places.setdefault(row["user_id"], set()).add(row["chunk_seq"])
        with self._rebuilding_on_failure():
            if self._inherited:  # its state is unknown: an earlier run or another process left it
                self._inherited, self.check_wanted = False, True
                if not all(self._is_whole(model, user_id) for user_id in places):
                    self.rebuild()
                    return True
            with self._changing([row["seq"] for row in rows]):
                for user_id, chunk_seqs in places.items():
                    self._bring(model, user_id, sorted(chunk_seqs))
        return True

    def verify(self) -> bool:
        """Compares the index with the record if requested, and rebuilds it if they differ."""
        if not self.check_wanted:
            return False
        with self._database.read() as connection:
            if connection.execute("SELECT EXISTS (SELECT 1 FROM vector_outbox)").fetchone()[0]:
                return False  # checked once the outbox is delivered
            counts = {
                (model, str(user_id)): int(count)
                for model in live_models(connection)
                for user_id, count in connection.execute(
                    "SELECT v.user_id, count(e.chunk_seq) FROM vector_collections v"
                    " JOIN chunks c ON c.user_id = v.user_id LEFT JOIN embeddings e"
                    " ON e.chunk_seq = c.seq AND e.model_seq = v.model_seq"
                    " WHERE v.model_seq = ? GROUP BY v.user_id",
                    (model.seq,),
                )
            }
            self._vectors.follow(generation(connection))
        with self._rebuilding_on_failure():
            if any(
                self._vectors.count(model.seq, user_id) != count
                or not self._is_whole(model, user_id)
                for (model, user_id), count in counts.items()
            ):
                log.warning("The vector index differs from the record: rebuilding it")
                self.rebuild()
        self._inherited = self.check_wanted = False
        return True

    def forget(self, model: Model) -> None:
        """Removes a model's vectors from the index."""
        with self._database.read() as connection:
            places = [place for place in _places(connection) if place[0] == model.seq]
        self._drop(places)

    def _drop(self, places: Sequence[Place]) -> None:
        """Drops collections from the index first: after a crash in between, it is done again."""
        if not places:
            return
        with self._database.read() as connection:
            is_last = set(places) == set(_places(connection))
        with self._rebuilding_on_failure(), self._changing():
            if is_last:
                self._vectors.drop()
            else:
                self._vectors.drop_users(places)
        with self._database.write() as connection:
            for table in ("vector_collections", "vector_outbox"):
                statement = f"DELETE FROM {table} WHERE model_seq = ? AND user_id = ?"
                connection.executemany(statement, places)

    @contextmanager
    def _changing(self, delivered: Sequence[int] = ()) -> Iterator[None]:
        """Counts the write of the block before it too, since a process may die midway.

        What was delivered leaves the outbox when the block ends.
        """
        with self._database.write() as connection:
            self._vectors.follow(generation(connection))
            self._vectors.wrote(_next_generation(connection))
        yield
        with self._database.write() as connection:
            connection.execute(
                "DELETE FROM vector_outbox WHERE seq IN (SELECT value FROM json_each(?))",
                (json.dumps(delivered),),
            )
            self._vectors.wrote(_next_generation(connection))

    def _bring(self, model: Model, user_id: str, chunk_seqs: Sequence[int]) -> None:
        """Makes one user's vectors match the record, whatever was queued."""
        import numpy as np

        with self._database.read() as connection:
            kept = dict(
                connection.execute(
                    "SELECT chunk_seq, vector FROM embeddings"
                    " WHERE chunk_seq IN (SELECT value FROM json_each(?)) AND model_seq = ?",
                    (json.dumps(chunk_seqs), model.seq),
                )
            )
        gone = [seq for seq in chunk_seqs if seq not in kept]
        if kept:
            vectors = np.frombuffer(b"".join(kept.values()), dtype="<f4").reshape(len(kept), -1)
            self._vectors.upsert(model.seq, user_id, list(kept), vectors)
        if gone:
            self._vectors.delete(model.seq, user_id, gone)

    def _is_whole(self, model: Model, user_id: str) -> bool:
        import numpy as np

        probe = np.ones(model.dimensions or 1, dtype=np.float32)
        return self._vectors.is_whole(model.seq, user_id, probe)

    @contextmanager
    def _rebuilding_on_failure(self) -> Iterator[None]:
        """Rebuilds an embedded index that fails, since it is damaged; a server may recover."""
        try:
            yield
        except VectorIndexError:
            if self._vectors.home.shared_files:
                self.rebuild()
            raise

    def rebuild(self) -> None:
        """Empties the index, and queues all vectors that it must hold."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM vector_outbox")
            _queue_vectors(connection, _places(connection))
            _next_generation(connection)
        self._vectors.drop()  # last: a crash before this rebuilds again, from a full queue


def generation(connection: sqlite3.Connection) -> int:
    """Returns the write count of the vector index; processes compare it with what they opened."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (_GENERATION,)).fetchone()
    return 0 if row is None else int(row[0])


def _next_generation(connection: sqlite3.Connection) -> int:
    row = connection.execute(
        "INSERT INTO meta (key, value) VALUES (?, '1')"
        " ON CONFLICT (key) DO UPDATE SET value = CAST(value AS INTEGER) + 1 RETURNING value",
        (_GENERATION,),
    ).fetchone()
    return int(row[0])


def is_indexed(connection: sqlite3.Connection, model_seq: int, user_id: str) -> bool:
    """Returns whether the vector index holds a user's vectors of a model."""
    found = connection.execute(
        "SELECT 1 FROM vector_collections WHERE model_seq = ? AND user_id = ?", (model_seq, user_id)
    )
    return found.fetchone() is not None


def _places(connection: sqlite3.Connection) -> list[Place]:
    rows = connection.execute("SELECT model_seq, user_id FROM vector_collections").fetchall()
    return [(int(row[0]), str(row[1])) for row in rows]


def _changed_places(connection: sqlite3.Connection) -> tuple[list[Place], list[Place]]:
    """Returns the collections to begin, and those to drop at half the limit."""
    begun = _places(connection)
    # Anyone with more than the limit has a segment: this avoids counting for everyone else.
    found = connection.execute("SELECT DISTINCT user_id FROM lexical_segments WHERE live = 1")
    crowded, sparse = [], []
    for user_id in {str(row[0]) for row in found} | {user_id for _, user_id in begun}:
        stored = count_chunks(connection, user_id)
        for model in live_models(connection):
            place = (model.seq, user_id)
            (waiting,) = connection.execute(
                "SELECT count(*) FROM embed_queue WHERE model_seq = ? AND user_id = ?", place
            ).fetchone()
            if place in begun:
                sparse += [place] * (stored - waiting <= EXACT_LIMIT // 2)
            elif stored - waiting > EXACT_LIMIT:
                crowded.append(place)
    return crowded, sparse


def _queue_vectors(connection: sqlite3.Connection, places: Iterable[Place]) -> None:
    connection.executemany(
        "INSERT INTO vector_outbox (chunk_seq, model_seq, user_id)"
        " SELECT c.seq, e.model_seq, c.user_id FROM chunks c JOIN embeddings e"
        " ON e.chunk_seq = c.seq JOIN models m ON m.seq = e.model_seq"
        " WHERE m.state <> 'old' AND e.model_seq = ? AND c.user_id = ?",
        places,
    )

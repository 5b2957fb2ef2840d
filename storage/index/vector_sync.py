"""Vector sync: updates the vector index from the record.

`vector_outbox` holds the changes that the index has not received. A batch leaves it only once the
index has it; delivering it twice does no harm. The state left by earlier runs or other processes is
compared with the record, and the index is rebuilt if they differ.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from storage.database import Database
from storage.errors import VectorIndexError
from storage.index.embedding_models import Model, live_models
from storage.index.vectors import VectorIndex

log = logging.getLogger("toolcrib.indexer")
OUTBOX_BATCH = 1000
_GENERATION = "vector_generation"
_Place = tuple[Model, str]  # a model and a user, whose vectors form one collection of the index


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

    def deliver(self, model: Model) -> bool:
        """Delivers one batch of a model's changes; returns False if there is none.

        Deletions of chunks concern every model, and are delivered with those of the current one.
        """
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT seq, chunk_seq, model_seq, user_id FROM vector_outbox"
                " WHERE model_seq = ? OR (model_seq IS NULL AND ?) ORDER BY seq LIMIT ?",
                (model.seq, model.state == "current", OUTBOX_BATCH),
            ).fetchall()
            places = _places(rows, live_models(connection))
            self._vectors.follow(generation(connection))
        if not rows:
            return False
        with self._rebuilding_on_failure():
            if self._inherited:  # its state is unknown: an earlier run or another process left it
                self._inherited, self.check_wanted = False, True
                if not all(self._is_whole(*place) for place in places):
                    self.rebuild()
                    return True
            with self._database.write() as connection:
                # Incremented before the first vector too: a process that dies midway has changed
                # the index.
                self._vectors.wrote(_next_generation(connection))
            for place, chunk_seqs in places.items():
                self._bring(place, chunk_seqs)
            with self._database.write() as connection:
                connection.execute(
                    "DELETE FROM vector_outbox WHERE seq IN (SELECT value FROM json_each(?))",
                    (json.dumps([row["seq"] for row in rows]),),
                )
                self._vectors.wrote(_next_generation(connection))
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
                    "SELECT c.user_id, count(*) FROM embeddings e"
                    " JOIN chunks c ON c.seq = e.chunk_seq WHERE e.model_seq = ?"
                    " GROUP BY c.user_id",
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
        with self._database.write() as connection:
            self._vectors.follow(generation(connection))
            self._vectors.wrote(_next_generation(connection))
        self._vectors.drop_model(model.seq)
        with self._database.write() as connection:
            self._vectors.wrote(_next_generation(connection))

    def _bring(self, place: _Place, chunk_seqs: Sequence[int]) -> None:
        """Makes one user's vectors match the record, whatever was queued."""
        import numpy as np

        model, user_id = place
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
        """Empties the index, and queues every stored vector for it."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM vector_outbox")
            connection.execute(
                "INSERT INTO vector_outbox (chunk_seq, model_seq, user_id)"
                " SELECT c.seq, e.model_seq, c.user_id FROM embeddings e"
                " JOIN chunks c ON c.seq = e.chunk_seq JOIN models m ON m.seq = e.model_seq"
                " WHERE m.state <> 'old'"
            )
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


def _places(rows: Sequence[sqlite3.Row], models: Sequence[Model]) -> dict[_Place, list[int]]:
    """Groups changed chunks by model and user, without duplicates and in order."""
    places: dict[_Place, dict[int, None]] = {}
    for row in rows:
        for model in models:
            if row["model_seq"] in {None, model.seq}:
                places.setdefault((model, row["user_id"]), {})[row["chunk_seq"]] = None
    return {place: sorted(chunk_seqs) for place, chunk_seqs in places.items()}

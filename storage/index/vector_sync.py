"""Vector sync: brings the vector index to what the record says.

`vector_outbox` holds what the index has still to hear. A batch leaves it only after the index has
it; work that was done twice leaves the same result. What earlier runs or other processes left is
compared with the record, and the index is rebuilt from the record where they differ.
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

_Place = tuple[Model, str]
"""A model and a user: what the index keeps apart."""


class VectorSync:
    """The way from the record to the vector index; used by the holder of the indexer's lock alone.

    Args:
        database: The record.
        vectors: The vector index.
    """

    def __init__(self, database: Database, vectors: VectorIndex) -> None:
        self._database = database
        self._vectors = vectors
        self._inherited = True
        self.check_wanted = False

    def consulted(self) -> bool:
        """Says that the index is used; whether what earlier runs left is still to be compared."""
        if self._inherited:
            self.check_wanted = True
        return self._inherited

    def deliver(self, model: Model) -> bool:
        """Delivers one batch of a model's news; False when there is none.

        News of deleted chunks are for every model, and are told with those of the current one.

        Raises:
            VectorIndexError: If the index fails; the news stay.
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
            if self._inherited:  # from an earlier run or another process, in whatever state
                self._inherited, self.check_wanted = False, True
                if not all(self._is_whole(*place) for place in places):
                    self.rebuild()
                    return True
            with self._database.write() as connection:
                # Counted before the first vector too: who dies on the way has changed the index.
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
        """Compares the index with the record where that is wanted, and rebuilds it if they differ.

        Raises:
            VectorIndexError: If the index fails.
        """
        if not self.check_wanted:
            return False
        with self._database.read() as connection:
            if connection.execute("SELECT EXISTS (SELECT 1 FROM vector_outbox)").fetchone()[0]:
                return False  # once that is delivered; until then it would be asked for ever
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
        """Removes what the index keeps of a model.

        Raises:
            VectorIndexError: If the index fails.
        """
        with self._database.write() as connection:
            self._vectors.follow(generation(connection))
            self._vectors.wrote(_next_generation(connection))
        self._vectors.drop_model(model.seq)
        with self._database.write() as connection:
            self._vectors.wrote(_next_generation(connection))

    def _bring(self, place: _Place, chunk_seqs: Sequence[int]) -> None:
        """Brings one user's vectors to what the record says now, whatever was queued."""
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
        """What fails on our disk is damaged; a server may be back in a moment."""
        try:
            yield
        except VectorIndexError:
            if self._vectors.home.shared_files:
                self.rebuild()
            raise

    def rebuild(self) -> None:
        """Empties the index, and queues for it every vector that the record has."""
        with self._database.write() as connection:
            connection.execute("DELETE FROM vector_outbox")
            connection.execute(
                "INSERT INTO vector_outbox (chunk_seq, model_seq, user_id)"
                " SELECT c.seq, e.model_seq, c.user_id FROM embeddings e"
                " JOIN chunks c ON c.seq = e.chunk_seq JOIN models m ON m.seq = e.model_seq"
                " WHERE m.state <> 'old'"
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


def _places(rows: Sequence[sqlite3.Row], models: Sequence[Model]) -> dict[_Place, list[int]]:
    """The chunks that news are of, each once, in order, by model and user."""
    places: dict[_Place, dict[int, None]] = {}
    for row in rows:
        for model in models:
            if row["model_seq"] in {None, model.seq}:
                places.setdefault((model, row["user_id"]), {})[row["chunk_seq"]] = None
    return {place: sorted(chunk_seqs) for place, chunk_seqs in places.items()}

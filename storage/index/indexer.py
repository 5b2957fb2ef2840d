"""The indexer: does the background work in batches.

The pending work is in the record, so nothing is lost when the process dies: `embed_queue` holds
chunks without vectors, `vector_outbox` holds changes for the vector index. A batch leaves its queue
only once it is done.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from storage.database import Database
from storage.errors import StorageError, StorageUnavailableError
from storage.index import maintenance
from storage.index.embed_queue import Pace, take
from storage.index.embedding_models import (
    Embedding,
    Model,
    Models,
    live_models,
    old_models,
    passage,
    store_vector,
    take_over,
)
from storage.index.static_vectors import make_rough_vectors
from storage.index.vector_sync import VectorSync
from storage.index.vectors import VectorIndex
from storage.keeping import erasure
from storage.locks import locked

log = logging.getLogger("toolcrib.indexer")
REMOVED_BATCH = 1000  # vectors of an old model removed in one transaction; writers wait for it
RETRY_SECONDS = 5.0  # seconds to wait after a failure, which rarely resolves itself at once
REST_SECONDS = 60.0  # seconds for which a failed model comes after the other one
UPKEEP_SHARE = 0.001  # of the time that may be spent on looking for upkeep that is not needed
IDLE_SECONDS = 1.0  # seconds to wait before looking for work left by another process
FOLD_SECONDS = 60.0  # seconds for which the log of a library in use may hold deleted data
STOP_SECONDS = 10.0  # seconds to wait for the current batch; a remote embedder may take longer


class Chore(Protocol):
    """Background work that runs when there is nothing to index."""

    @property
    def is_due(self) -> bool:
        """Whether it is time to look for work."""

    def step(self) -> bool:
        """Does one piece of work; returns False if there is none."""


class Indexer:
    """Embeds new chunks, and keeps the lexical index and the vector index up to date.

    Of all processes on a data directory only one works at a time: the holder of a file lock, which
    the system releases when that process dies.
    """

    def __init__(
        self,
        database: Database,
        models: Models,
        vectors: VectorIndex,
        lock_path: Path,
        *,
        chore: Chore | None = None,
    ) -> None:
        self._database = database
        self._models = models
        self._vector_sync = VectorSync(database, vectors)
        self._lock_path = lock_path
        self._chore = chore
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._pace = Pace()
        self._failed: dict[int, float] = {}
        self._erased = -FOLD_SECONDS
        self._thorough_at = 0.0
        self.problem = ""

    def start(self) -> None:
        """Starts the background thread."""
        self._stopping.clear()
        self._thread = threading.Thread(target=self._work, name="toolcrib-indexer", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops after the current batch; a batch that takes too long ends with the process."""
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(STOP_SECONDS)
            self._thread = None

    def notify(self) -> None:
        """Signals new work."""
        self._wake.set()

    def check(self) -> None:
        """Requests a check of the vector index, and a rebuild if it differs from the record."""
        self._vector_sync.check_wanted = True
        self._wake.set()

    def consulted(self) -> None:
        """Signals that the vector index is used; the first use triggers a check of its state."""
        if self._vector_sync.consulted():
            self._wake.set()

    def step(self, *, thorough: bool = True) -> bool:
        """Does one batch of work; returns False if there is none or another process is working.

        Only a thorough step looks for upkeep of the indexes, for which it goes through all users.
        """
        if not (self._vector_sync.check_wanted or self._has_work(thorough=thorough)):
            return False
        from storage.people import cards  # it loads what a start need not

        with self._locked(wait=False) as held:
            return held and (
                cards.work(self._database)
                or (thorough and maintenance.work(self._database))
                or self._advance()
            )

    def rebuild_vectors(self) -> None:
        """Empties the vector index, which `step` fills again from stored vectors.

        Search results stay the same meanwhile. Waits for the current batch of another process.
        """
        with self._locked(wait=True):
            self._vector_sync.rebuild()
        self._wake.set()

    def rebuild_words(self) -> None:
        """Empties the lexical index, which `step` fills again.

        Until then, keywords find only chunks that are indexed again.
        """
        with self._locked(wait=True), self._database.write() as connection:
            maintenance.reset(connection)
        self._thorough_at = 0.0
        self._wake.set()

    @contextmanager
    def _locked(self, *, wait: bool) -> Iterator[bool]:
        with ExitStack() as held:
            try:
                is_ours = held.enter_context(locked(self._lock_path, wait=wait))
            except OSError as error:
                raise StorageUnavailableError(
                    f"{self._lock_path}: {error.strerror}.",
                    suggestions=("Nothing is indexed until it can be written.",),
                ) from error
            yield is_ours

    def _work(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            began, thorough = time.thread_time(), time.monotonic() >= self._thorough_at
            try:
                worked = self.step(thorough=thorough) or self._tend()
                self.problem = self.problem if worked and self._failed else ""
            except StorageError as error:
                self._tell(error.message)
                worked = False
            except Exception:
                log.exception("Indexing failed")
                self.problem, worked = "internal failure, see the log", False
            if self.problem and not worked:
                self._stopping.wait(RETRY_SECONDS)
            elif not worked:
                if thorough:
                    spent = time.thread_time() - began
                    self._thorough_at = time.monotonic() + spent / UPKEEP_SHARE
                self._erase()
                self._wake.wait(IDLE_SECONDS)

    def _tell(self, problem: str) -> None:
        """Logs a problem once, as long as it stays the same."""
        if problem != self.problem:
            log.warning("Indexing waits: %s", problem)
        self.problem = problem

    def _tend(self) -> bool:
        if self._chore is None or not self._chore.is_due:
            return False
        with self._locked(wait=False) as held:
            return held and self._chore.step()

    def _erase(self) -> None:
        """Removes deleted data from the log and the file from time to time."""
        if time.monotonic() - self._erased > FOLD_SECONDS:
            self._erased = time.monotonic()
            with (
                suppress(StorageUnavailableError),  # no space or no lock: it is tried again later
                self._locked(wait=False) as held,
            ):
                if held and erasure.is_due(self._database):
                    erasure.erase(self._database)
                else:
                    self._database.fold_log()

    def _has_work(self, *, thorough: bool) -> bool:
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT EXISTS (SELECT 1 FROM embed_queue) OR EXISTS (SELECT 1 FROM vector_outbox)"
                " OR EXISTS (SELECT 1 FROM models WHERE state <> 'current')"
                " OR EXISTS (SELECT 1 FROM stale_cards)"
            ).fetchone()
            return bool(row[0]) or (
                thorough
                and (maintenance.has_work(connection) or self._vector_sync.is_due(connection))
            )

    def _advance(self) -> bool:
        """Does one batch for one model: the current one first, unless it has just failed.

        While rough vectors are pending, only chunks added on their own are embedded too.
        """
        failure: StorageUnavailableError | None = None
        rough = make_rough_vectors(self._database)
        with self._database.read() as connection:
            models = live_models(connection)
        late = time.monotonic() - REST_SECONDS
        for model in sorted(models, key=lambda model: self._failed.get(model.seq, late) > late):
            try:
                if self._embed_batch(model, one_of_many=not rough) or (
                    not rough and self._vector_sync.deliver(model)
                ):
                    self._failed.pop(model.seq, None)
                    return True
            except StorageUnavailableError as error:
                self._failed[model.seq] = time.monotonic()
                failure = failure or error
                self._tell(error.message)
        sync = self._vector_sync
        if rough or sync.settle() or self._take_over() or self._remove_old() or sync.verify():
            return True
        if failure is not None:
            raise failure
        self._failed.clear()
        return False

    def _embed_batch(self, model: Model, *, one_of_many: bool = True) -> bool:
        with self._database.read() as connection:
            rows = take(connection, model.seq, self._pace, one_of_many=one_of_many)
        if not rows:
            return False
        passages = [passage(*row[1:]) for row in rows]
        with self._pace.timed(len(rows)):
            embeddings = Embedding.of_passages(model, self._models.embedder(model), passages)
        with self._database.write() as connection:
            for row, embedding in zip(rows, embeddings, strict=True):
                store_vector(connection, row["seq"], embedding)
        return True

    def _take_over(self) -> bool:
        with self._database.read() as connection:
            if len(live_models(connection)) == 1:
                return False
        with self._database.write() as connection:
            taken = take_over(connection)
        if taken:
            log.info("Searches now use the new embedder")
        return taken

    def _remove_old(self) -> bool:
        with self._database.read() as connection:
            old = old_models(connection)
        if not old:
            return False
        with self._database.write() as connection:
            removed = connection.execute(
                "DELETE FROM embeddings WHERE rowid IN"
                " (SELECT rowid FROM embeddings WHERE model_seq = ? LIMIT ?)",
                (old[0].seq, REMOVED_BATCH),
            )
        if not removed.rowcount:
            self._vector_sync.forget(old[0])
            with self._database.write() as connection:
                connection.execute("DELETE FROM models WHERE seq = ?", (old[0].seq,))
        return True


@dataclass(frozen=True, slots=True)
class Backlog:
    """The pending work of the indexer, for all users."""

    words: int  # chunks that keywords do not find yet
    embeddings: int  # vectors still to be made
    vectors: int  # changes the vector index has not received yet

    def __bool__(self) -> bool:
        return bool(self.words or self.embeddings or self.vectors)


def read_backlog(connection: sqlite3.Connection) -> Backlog:
    """Counts the pending work."""
    row = connection.execute(
        "SELECT (SELECT count(*) FROM lexical_todo t"
        " JOIN chunks c ON c.seq BETWEEN t.first_seq AND t.last_seq),"
        " (SELECT count(*) FROM embed_queue), (SELECT count(*) FROM vector_outbox)"
    ).fetchone()
    return Backlog(*row)

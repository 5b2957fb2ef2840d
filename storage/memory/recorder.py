"""The recorder: writes entries in the background, several in one transaction."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

from storage.errors import StorageError
from storage.memory.entries import Entries
from storage.memory.models import NewEntry
from storage.models import Identity

MOST_WAITING = 1_000  # maximum entries that wait while the record is locked; further ones are lost
COMPLAINT_SECONDS = 60.0  # minimum seconds between two warnings in the log

_logger = logging.getLogger("toolcrib")


class Recorder:
    """Writes entries in order on a thread of its own, and never raises."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._waiting: deque[tuple[Identity, NewEntry]] = deque()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="recorder")
        self._closing = threading.Lock()
        self._closed = False
        self._complained = -COMPLAINT_SECONDS

    def submit(self, identity: Identity, new: NewEntry) -> Future[None]:
        """Queues an entry; the future is done once it is written, or is known to be lost."""
        with self._closing:
            if not self._closed and len(self._waiting) < MOST_WAITING:
                self._waiting.append((identity, new))
                return self._thread.submit(self._write)
        self._complain("the record is locked, and too many calls wait")
        lost: Future[None] = Future()
        lost.set_result(None)
        return lost

    def close(self) -> None:
        """Writes the queued entries and stops the thread."""
        with self._closing:
            self._closed = True
        self._thread.shutdown()

    def _write(self) -> None:
        """Writes all queued entries; later calls for the same batch then find nothing to do."""
        batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if not batch:
            return
        try:
            self._entries.record_all(batch)
        except StorageError as error:
            self._complain(error.message)
        except Exception as error:
            if time.monotonic() - self._complained >= COMPLAINT_SECONDS:
                _logger.exception("A call could not be recorded")
            self._complain(str(error))

    def _complain(self, problem: str) -> None:
        now = time.monotonic()
        if now - self._complained >= COMPLAINT_SECONDS:
            self._complained = now
            _logger.warning("Calls are not recorded: %s", problem)

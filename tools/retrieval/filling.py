"""Fills the slower parts of the index in the background, using cached vectors."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from tools.retrieval.models import ToolRecord
from tools.retrieval.vectors import DensePart

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors

LOOK_UPS = 2_000  # vectors that are requested from the cache at once
BATCH = 64  # texts that are embedded at once; results are kept and searches run between batches
RETRY_SECONDS = 60.0  # delay before a failed embedder is tried again
KEPT_AS = "<f2"  # the cache's vector format: half precision changes a cosine by less than 0.001
logger = logging.getLogger(__name__)


class AnalysisCache(Protocol):
    """A cache of values by keys of `key_of`; it may forget any of them."""

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Returns the cached values of these keys."""

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Caches values."""


class SafeCache:
    """Wraps a cache that may be missing or fail, since everything in it can be computed again.

    Safe to share between threads.

    Args:
        cache: The cache; None caches nothing.
    """

    def __init__(self, cache: AnalysisCache | None) -> None:
        self._cache = cache
        self._deferred: dict[bytes, bytes] = {}
        self._lock = threading.Lock()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Returns the cached values of these keys."""
        if self._cache is None or not keys:
            return {}
        try:
            return self._cache.get(keys)
        except Exception as error:  # noqa: BLE001  # caching is optional, so no failure matters
            logger.warning("The stored vectors of tools cannot be read: %s", error)
            return {}

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Caches values, if possible."""
        if self._cache is None or not values:
            return
        try:
            self._cache.put(values)
        except Exception as error:  # noqa: BLE001  # caching is optional, so no failure matters
            logger.warning("The vectors of tools cannot be stored: %s", error)

    def defer(self, key: bytes, value: bytes) -> None:
        """Queues a value for `flush`, for callers that must not wait for the disk."""
        if self._cache is not None:
            with self._lock:
                self._deferred[key] = value

    def flush(self) -> None:
        """Caches the queued values."""
        with self._lock:
            values, self._deferred = self._deferred, {}
        self.put(values)


class Filler:
    """Fills the parts of an index, in its own thread or in a caller's that waits.

    A failing embedder is logged and tried again later; searches continue with the rest.

    Args:
        parts: The parts, quickest first.
    """

    def __init__(
        self,
        parts: Sequence[DensePart],
        records: Mapping[int, ToolRecord],
        lock: threading.RLock,
        cache: SafeCache,
    ) -> None:
        self._parts = parts
        self._records = records
        self._lock = lock
        self._cache = cache
        self._turn = threading.Lock()
        self._work = threading.Event()
        self._quick = threading.Event()
        self._failed: set[str] = set()
        self._closed = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts filling in the background."""
        if self._thread is None:
            self._closed = False
            self._thread = threading.Thread(target=self._run, name="tool-index", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Ends the thread after its current batch."""
        self._closed = True
        self._work.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def wake(self) -> None:
        """Announces new work."""
        self._quick.clear()
        self._work.set()

    def wait_for_quick(self, seconds: float) -> None:
        """Waits until cached vectors and the quickest part are filled, or for so long."""
        if self._thread is not None:
            self._quick.wait(seconds)

    def fill(self) -> None:
        """Does all pending work in the caller's thread."""
        with self._turn:
            self._failed.clear()
            while not self._closed and self._step():
                pass

    def _run(self) -> None:
        while not self._closed:
            self.fill()
            self._work.wait(RETRY_SECONDS if self._failed else None)
            self._work.clear()  # before the loop checks for the end, so that none is missed

    def _step(self) -> bool:
        """Does one batch of work; returns whether there was any."""
        self._cache.flush()
        for part in self._parts:
            if part.unseen:
                self._look_up(part)
                return True
        wanting = [
            each
            for each in self._parts
            if each.missing and each.embedder.model_id not in self._failed
        ]
        if not wanting or wanting[0] is not self._parts[0]:
            self._note_quick()
        if wanting:
            self._embed(wanting[0])
        return bool(wanting)

    def _note_quick(self) -> None:
        with self._lock:  # `wake` resets it for work added later
            if not any(part.unseen for part in self._parts):
                self._quick.set()

    def _look_up(self, part: DensePart) -> None:
        texts = self._take(part, part.unseen, LOOK_UPS)
        keys = {slot: _key(part, text) for slot, text in texts.items()}
        kept = self._cache.get(list(set(keys.values())))
        found = {slot: text for slot, text in texts.items() if keys[slot] in kept}
        if found:
            self._put(part, found, _unpacked([kept[keys[slot]] for slot in found]))
        with self._lock:
            part.missing.extend(slot for slot in texts if slot not in found)

    def _embed(self, part: DensePart) -> None:
        texts = self._take(part, part.missing, BATCH)
        if not texts:
            return
        try:
            vectors = part.embedder.embed_passages(list(texts.values()))
        except Exception as error:  # noqa: BLE001  # searches continue without a failed model
            logger.warning("Tools are found without %s: %s", part.embedder.model_id, error)
            self._failed.add(part.embedder.model_id)
            with self._lock:
                part.missing.extendleft(reversed(texts))
            return
        self._put(part, texts, vectors)
        rows = zip(texts.values(), vectors, strict=True)
        self._cache.put({_key(part, text): row.astype(KEPT_AS).tobytes() for text, row in rows})

    def _take(self, part: DensePart, queue: deque[int], count: int) -> dict[int, str]:
        """Takes slots that still lack a vector from a queue, with their tools' texts."""
        taken: dict[int, str] = {}
        with self._lock:
            while queue and len(taken) < count:
                slot = queue.popleft()
                if slot in self._records and part.lacks(slot):
                    taken[slot] = part.text(self._records[slot])
        return taken

    def _put(self, part: DensePart, texts: Mapping[int, str], vectors: Vectors) -> None:
        """Stores the vectors of unchanged tools; changed ones are queued again."""
        with self._lock:
            current = [
                row
                for row, (slot, text) in enumerate(texts.items())
                if slot in self._records and part.text(self._records[slot]) == text
            ]
            slots = list(texts)
            part.put([slots[row] for row in current], vectors[current])


def key_of(kind: str, text: str) -> bytes:
    """Returns the SHA-256 under which the analysis of a text is cached."""
    return hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest()


def _key(part: DensePart, text: str) -> bytes:
    return key_of(part.embedder.model_id, text)


def _unpacked(rows: Sequence[bytes]) -> Vectors:
    import numpy as np

    vectors: Vectors = np.frombuffer(b"".join(rows), KEPT_AS).astype(np.float32)
    return vectors.reshape(len(rows), -1)

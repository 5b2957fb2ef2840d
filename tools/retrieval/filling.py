"""The heavier parts are made in the background, from the cache where it has them."""

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

LOOK_UPS = 2_000
"""Vectors that the cache is asked for at once."""

BATCH = 64
"""Texts that are embedded at once: what is done is kept, and searches get their turn."""

RETRY_SECONDS = 60.0
"""How long an embedder that failed is left alone."""

KEPT_AS = "<f2"
"""How the cache keeps vectors: half precision moves a cosine by less than 0.001."""

logger = logging.getLogger(__name__)


class AnalysisCache(Protocol):
    """Values by keys of `key_of`; it may forget any of them."""

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values that are kept under these keys."""

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keeps values."""


class SafeCache:
    """A cache that may be missing or fail: whatever it does not have can be made again.

    Safe to share between threads.

    Args:
        cache: The cache; None keeps nothing.
    """

    def __init__(self, cache: AnalysisCache | None) -> None:
        self._cache = cache
        self._deferred: dict[bytes, bytes] = {}
        self._lock = threading.Lock()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """What the cache has of some keys."""
        if self._cache is None or not keys:
            return {}
        try:
            return self._cache.get(keys)
        except Exception as error:  # noqa: BLE001  # whatever a cache raises, it can be done without
            logger.warning("The stored vectors of tools cannot be read: %s", error)
            return {}

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keeps values, if the cache can."""
        if self._cache is None or not values:
            return
        try:
            self._cache.put(values)
        except Exception as error:  # noqa: BLE001  # whatever a cache raises, it can be done without
            logger.warning("The vectors of tools cannot be stored: %s", error)

    def defer(self, key: bytes, value: bytes) -> None:
        """Takes a value that `flush` is to keep: whoever made it has no time to write."""
        if self._cache is not None:
            with self._lock:
                self._deferred[key] = value

    def flush(self) -> None:
        """Keeps what was deferred."""
        with self._lock:
            values, self._deferred = self._deferred, {}
        self.put(values)


class Filler:
    """Fills the parts of an index, in a thread of its own or in that of whoever waits for it.

    An embedder that fails is logged, and tried again later; searches go on with what is there.

    Args:
        parts: What is filled, the quickest first.
        records: The tool of each slot.
        lock: Guards the parts and the records.
        cache: Where vectors are kept, and what others deferred is to be.
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
        """Fills in the background from now on."""
        if self._thread is None:
            self._closed = False
            self._thread = threading.Thread(target=self._run, name="tool-index", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Ends the thread after the batch that it is at."""
        self._closed = True
        self._work.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def wake(self) -> None:
        """Says that there is something to do."""
        self._quick.clear()
        self._work.set()

    def wait_for_quick(self, seconds: float) -> None:
        """Waits until the background has what is kept and the quickest part, or for so long."""
        if self._thread is not None:
            self._quick.wait(seconds)

    def fill(self) -> None:
        """Does all there is to do, in the caller's thread."""
        with self._turn:
            self._failed.clear()
            while not self._closed and self._step():
                pass

    def _run(self) -> None:
        while not self._closed:
            self.fill()
            self._work.wait(RETRY_SECONDS if self._failed else None)
            self._work.clear()  # here, where no end can be missed: the loop looks for one next

    def _step(self) -> bool:
        """One batch of work; whether there was any."""
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
        with self._lock:  # what comes after this look is noted by `wake` after it
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
        except Exception as error:  # noqa: BLE001  # searches must go on, whatever a model raises
            logger.warning("Tools are found without %s: %s", part.embedder.model_id, error)
            self._failed.add(part.embedder.model_id)
            with self._lock:
                part.missing.extendleft(reversed(texts))
            return
        self._put(part, texts, vectors)
        rows = zip(texts.values(), vectors, strict=True)
        self._cache.put({_key(part, text): row.astype(KEPT_AS).tobytes() for text, row in rows})

    def _take(self, part: DensePart, queue: deque[int], count: int) -> dict[int, str]:
        """Takes slots from a queue that still want a vector, each with what is read of its tool."""
        taken: dict[int, str] = {}
        with self._lock:
            while queue and len(taken) < count:
                slot = queue.popleft()
                if slot in self._records and part.lacks(slot):
                    taken[slot] = part.text(self._records[slot])
        return taken

    def _put(self, part: DensePart, texts: Mapping[int, str], vectors: Vectors) -> None:
        """Puts in the vectors of tools that are still what they were; others are in the queue."""
        with self._lock:
            current = [
                row
                for row, (slot, text) in enumerate(texts.items())
                if slot in self._records and part.text(self._records[slot]) == text
            ]
            slots = list(texts)
            part.put([slots[row] for row in current], vectors[current])


def key_of(kind: str, text: str) -> bytes:
    """The SHA-256 under which the analysis of a text is kept.

    Args:
        kind: What makes it, and its version: another kind of the same text is another value.
        text: The text.
    """
    return hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest()


def _key(part: DensePart, text: str) -> bytes:
    return key_of(part.embedder.model_id, text)


def _unpacked(rows: Sequence[bytes]) -> Vectors:
    import numpy as np

    vectors: Vectors = np.frombuffer(b"".join(rows), KEPT_AS).astype(np.float32)
    return vectors.reshape(len(rows), -1)

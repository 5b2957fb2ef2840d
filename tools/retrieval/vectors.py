"""One vector per tool and embedder: cached ones, and others that are computed in the background."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from storage.index.embedders.base import Embedder
from storage.index.embedders.bundled import MiniLMEmbedder, StaticEmbedder
from tools.retrieval.models import ToolRecord
from tools.retrieval.words import brief_text, full_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from storage.index.embedders.base import Vectors
    from tools.retrieval.words import Ints

    Bools = NDArray[np.bool_]


READY_SHARE = 0.5  # the share of tools that must have a vector before cosines count
MIN_ROWS = 256  # the initial number of slots in a table
COPIED = 4  # the cost of copying a vector relative to multiplying it


class SpanEmbedder(Embedder, Protocol):
    """An embedder that also embeds parts of a query."""

    def embed_spans(self, text: str, spans: Sequence[tuple[int, int]]) -> Vectors:
        """Returns one row for a text, then one for each span of its characters."""


class DensePart:
    """The vectors of one embedder, by the slots of the tools."""

    def __init__(
        self, embedder: SpanEmbedder, weight: float, text: Callable[[ToolRecord], str]
    ) -> None:
        self.embedder = embedder
        self.weight = weight
        self.text = text  # returns the text that it reads for a tool
        # Slots not yet looked up in the cache, in order of arrival.
        self.unseen: deque[int] = deque()
        self.missing: deque[int] = deque()  # slots that must be embedded, in order of arrival
        self._filled: set[int] = set()
        self._table: tuple[Vectors, Bools] | None = None  # by slot; zeros if unknown

    def lacks(self, slot: int) -> bool:
        """Returns whether a tool's vector is missing."""
        return slot not in self._filled

    def drop(self, slot: int) -> None:
        """Drops the vector of a slot, if any."""
        if slot in self._filled and self._table is not None:
            self._filled.discard(slot)
            for rows in self._table:
                rows[slot] = 0

    def put(self, slots: Sequence[int], vectors: Vectors) -> None:
        """Stores the vectors of some slots."""
        if not slots:
            return
        rows = list(slots)
        matrix, known = self._reserved(max(rows) + 1, vectors.shape[1])
        matrix[rows] = vectors
        known[rows] = True
        self._filled.update(rows)

    def share(self, tools: int) -> float:
        """Returns the share of so many tools that have a vector."""
        return len(self._filled) / tools if tools else 1.0

    def is_ready(self, tools: int) -> bool:
        """Returns whether enough of so many tools have a vector for cosines to count."""
        return self._table is not None and self.share(tools) >= READY_SHARE

    def cosines(
        self, query: Vectors, size: int, slots: Ints | None = None
    ) -> tuple[Vectors, Bools | None]:
        """Returns the cosines of a query with some slots, and which of them are known (None: all).

        Without slots these are all slots below `size`. An unknown cosine is 0. Everything runs in
        the caller's thread: BLAS would use several threads, and on a busy machine a search would
        wait ten times as long for them.
        """
        import numpy as np

        matrix, known = self._reserved(size, len(query))
        few = slots is not None and len(slots) * COPIED < size
        rows = matrix[slots] if few else matrix[:size]
        cosines: Vectors = np.einsum("ij,j->i", rows, query)
        if slots is not None and not few:
            cosines = cosines[slots]
        if len(self._filled) == size:
            return cosines, None
        return cosines, known[:size] if slots is None else known[slots]

    def _reserved(self, size: int, dimensions: int) -> tuple[Vectors, Bools]:
        """Returns the table with room for so many slots, and some spare room if it had to grow."""
        import numpy as np

        if self._table is None:
            self._table = np.zeros((0, dimensions), np.float32), np.zeros(0, np.bool_)
        matrix, known = self._table
        if size > len(matrix):
            more = max(size * 5 // 4, MIN_ROWS) - len(matrix)
            self._table = np.pad(matrix, ((0, more), (0, 0))), np.pad(known, (0, more))
        return self._table


def bundled_parts() -> tuple[DensePart, DensePart]:
    """Returns the parts of the bundled embedders: the static one, then the model."""
    return (
        DensePart(StaticEmbedder(), 0.3, full_text),
        DensePart(MiniLMEmbedder(), 0.7, brief_text),
    )


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
    """Fills the parts of an index, quickest first, in its own thread or in a caller that waits.

    A failing embedder is logged and tried again later; searches continue with the rest.
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
        self._whole = threading.Event()
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
        self._whole.clear()
        self._work.set()

    def wait(self, quick: float, whole: float) -> None:
        """Waits `whole` seconds for all vectors; if that is shorter, `quick` for the quickest."""
        if self._thread is not None and not self._whole.wait(max(whole, 0.0)):
            self._quick.wait(max(quick - max(whole, 0.0), 0.0))

    @property
    def is_filling(self) -> bool:
        """Whether vectors are being computed in the background."""
        return self._thread is not None and not self._whole.is_set()

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
            with self._lock:  # `wake` resets it for work added later
                if not any(part.unseen for part in self._parts):
                    self._quick.set()
                    if not wanting:
                        self._whole.set()
        if wanting:
            self._embed(wanting[0])
        return bool(wanting)

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

"""What was made of a tool's texts, kept across restarts: by what, never by whose."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Protocol

__all__ = ["AnalysisCache", "SafeCache", "key_of"]

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


def key_of(kind: str, text: str) -> bytes:
    """The SHA-256 under which the analysis of a text is kept.

    Args:
        kind: What makes it, and its version: another kind of the same text is another value.
        text: The text.
    """
    return hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest()

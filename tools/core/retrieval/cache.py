"""What was made of a tool's texts, kept across restarts: by what, never by whose."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Protocol

__all__ = ["AnalysisCache", "key_of"]


class AnalysisCache(Protocol):
    """Values by keys of `key_of`; it may forget any of them."""

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values that are kept under these keys."""

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keeps values."""


def key_of(kind: str, text: str) -> bytes:
    """The SHA-256 under which the analysis of a text is kept.

    Args:
        kind: What makes it, and its version: another kind of the same text is another value.
        text: The text.
    """
    return hashlib.sha256(f"{kind}\0{text}".encode("utf-8", "surrogatepass")).digest()

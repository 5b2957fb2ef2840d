"""`_meta`: what of it is between two neighbours, and what goes on to the other end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import mcp_types as types

__all__ = ["asks_for_progress", "forwarded", "with_forwarded_meta"]

_BETWEEN_NEIGHBOURS = "io.modelcontextprotocol/"
"""What the keys begin with that are between two neighbours (schema 2026-07-28)."""
_PROGRESS = frozenset({"progressToken", "progress_token"})

ResultT = TypeVar("ResultT", bound=types.Result)


def asks_for_progress(meta: Mapping[str, Any] | None) -> bool:
    """Whether whoever sent this with a request hears how far it is."""
    return not _PROGRESS.isdisjoint(meta or {})


def forwarded(meta: Mapping[str, Any] | None) -> dict[str, Any]:
    """What of it concerns the other end."""
    return {
        key: value
        for key, value in (meta or {}).items()
        if key not in _PROGRESS and not key.startswith(_BETWEEN_NEIGHBOURS)
    }


def with_forwarded_meta(result: ResultT) -> ResultT:
    """A result of another server as one of ours: to the client it comes from here."""
    if not result.meta:
        return result
    return result.model_copy(update={"meta": forwarded(result.meta) or None})

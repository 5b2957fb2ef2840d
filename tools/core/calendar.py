"""Seconds as dates; a file system keeps times that no calendar has."""

from __future__ import annotations

from datetime import UTC, datetime

__all__ = ["FIRST_SECOND", "LAST_SECOND", "utc"]

FIRST_SECOND = datetime.min.replace(tzinfo=UTC).timestamp()
LAST_SECOND = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()


def utc(seconds: float) -> datetime:
    """The date of Unix seconds, UTC; beyond the calendar its first or last second."""
    return datetime.fromtimestamp(min(max(seconds, FIRST_SECOND), LAST_SECOND), UTC)

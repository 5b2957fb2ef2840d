"""Seconds as dates, and the zones that dates are in."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tools.core.errors import InvalidArgumentsError

__all__ = ["FIRST_SECOND", "LAST_SECOND", "utc", "zone_of"]

FIRST_SECOND = datetime.min.replace(tzinfo=UTC).timestamp()
LAST_SECOND = datetime.max.replace(tzinfo=UTC, microsecond=0).timestamp()


def utc(seconds: float) -> datetime:
    """The date of Unix seconds, UTC; beyond the calendar its first or last second.

    A file system keeps times that no calendar has.
    """
    return datetime.fromtimestamp(min(max(seconds, FIRST_SECOND), LAST_SECOND), UTC)


def zone_of(name: str, parameter: str = "timezone") -> tzinfo:
    """The zone of an IANA name.

    Args:
        name: Such as "Europe/Paris".
        parameter: What the caller knows it as.

    Raises:
        InvalidArgumentsError: If there is none of that name.
    """
    try:
        return UTC if name == "UTC" else ZoneInfo(name)  # UTC needs no zone files
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        raise InvalidArgumentsError(
            f"{parameter}: {name!r} is not a time zone.",
            next_actions=('Give an IANA name such as "Europe/Paris", or leave it out for UTC.',),
        ) from error

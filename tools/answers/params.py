"""Parameters shared by several tools: identity, time and limits."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from datetime import timedelta, tzinfo
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from storage.models import (
    FIRST_SECOND,
    LAST_SECOND,
    NOON,
    MemoryLayer,
    TimeRange,
    TimeType,
    seconds_of,
)
from tools.answers.dates import zone_of
from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolModel
from tools.core.unicode_safety import check_passable, check_whole

MAX_METADATA = 65_536  # limit on the JSON of a document's metadata
METADATA_LEVELS = 32  # limit on the nesting of metadata; clients fail on much deeper answers


Whole = AfterValidator(check_whole)  # annotates texts that are encoded
Passable = AfterValidator(check_passable)  # annotates texts that are passed to a program


def _keepable(metadata: dict[str, Any]) -> dict[str, Any]:
    """Checks that the metadata can be stored and returned unchanged."""
    try:
        text = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise ValueError("send null or a text where a number is not finite.") from None
    if len(text) > MAX_METADATA:
        raise ValueError(f"send at most {MAX_METADATA} characters of JSON, not {len(text)}.")
    if _levels(metadata) > METADATA_LEVELS:
        raise ValueError(f"send at most {METADATA_LEVELS} levels of nesting.")
    check_whole(text)
    return metadata


def _with_words(text: str) -> str:
    if not any(char.isprintable() and not char.isspace() for char in text):
        raise ValueError("send a text with words in it.")
    return check_whole(text)


def _levels(value: object) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(_levels, value.values() if isinstance(value, dict) else value), default=0)


Names = Annotated[list[Annotated[str, Field(max_length=256)]], Field(max_length=100)]
Metadata = Annotated[dict[str, Any], AfterValidator(_keepable)]
TopK = Annotated[int, Field(ge=1, le=100, description="Most results")]
Content = Annotated[str, Field(max_length=20_000), AfterValidator(_with_words)]
Grade = Annotated[float, Field(ge=0, le=10, allow_inf_nan=False)]
RawType = Annotated[str, Field(min_length=1, max_length=64, description="Kind of source")]
RawId = Annotated[str, Field(min_length=1, max_length=1024, description="The source's own name")]
SessionId = Annotated[str, Field(min_length=1, max_length=256)]
Numbers = Annotated[list[Annotated[int, Field(ge=1, lt=2**53)]], Field(max_length=1000)]
Layer = Annotated[
    Literal["l1", "l2", "l3", "l4"],
    Field(description="l1 recent calls, l2 important, l3 session summaries, l4 long-term"),
]

Instant = float | str  # Unix seconds or ISO 8601
Zone = Annotated[
    str, Field(description="IANA zone of ISO times without one; default: the machine's")
]
DAY_END = timedelta(days=1, microseconds=-1)  # a date as an end includes that day
_DATE_LENGTHS = (len("YYYY"), len("YYYYMMDD"))


class TimeWindow(ToolModel):
    """A range of times, with both ends included, in Unix seconds or ISO 8601.

    Attributes:
        start: Unix seconds or ISO 8601.
        end: Unix seconds or ISO 8601; a date includes the whole day.
        timezone: IANA zone for ISO times without one; the machine's by default.
        time_type: The kind of time to compare.
    """

    model_config = ConfigDict(extra="forbid")

    start: Annotated[Instant | None, Field(description="Unix seconds or ISO 8601")] = None
    end: Annotated[Instant | None, Field(description="Unix seconds or ISO 8601")] = None
    timezone: Zone = ""
    time_type: Literal["event_time_ts", "create_time_ts", "update_time_ts"] = "event_time_ts"

    def to_range(self) -> TimeRange:
        """Converts it to Unix seconds."""
        zone = zone_of(self.timezone, "time_range.timezone")
        start = _seconds("time_range.start", self.start, zone, timedelta())
        end = _seconds("time_range.end", self.end, zone, DAY_END)
        if start is not None and end is not None and start > end:
            raise InvalidArgumentsError(
                f"time_range.start ({self.start!r}) is after time_range.end ({self.end!r}).",
                next_actions=("Swap them.",),
            )
        return TimeRange(start, end, TimeType(self.time_type))


def layer_of(name: str) -> MemoryLayer:
    """Returns the memory layer for a name from "l1" to "l4"."""
    return MemoryLayer(int(name[1:]))


def instant(
    name: str, value: Instant | None, timezone: str = "", at: timedelta = NOON
) -> float | None:
    """Converts a parameter to Unix seconds; a date alone means the time `at` of that day."""
    seconds = _seconds(name, value, zone_of(timezone), at)
    if seconds is None:
        return None
    if not FIRST_SECOND <= seconds <= LAST_SECOND + 1:
        raise InvalidArgumentsError(
            f"{name}: {value!r} is outside the years 1 to 9999.",
            next_actions=("Give Unix seconds, not milliseconds, or ISO 8601.",),
        )
    return min(seconds, LAST_SECOND)  # the end of the last second may round up


def _seconds(name: str, value: Instant | None, zone: tzinfo | None, at: timedelta) -> float | None:
    if value is None:
        return None
    try:
        return _finite(_parsed(value, zone, at) if isinstance(value, str) else value)
    except (ValueError, OverflowError) as error:
        raise InvalidArgumentsError(
            f"{name}: {value!r} is not a time.",
            next_actions=('Give Unix seconds, or ISO 8601 such as "2026-11-21T09:00".',),
        ) from error


def _parsed(text: str, zone: tzinfo | None, at: timedelta) -> float:
    # "2026" and "20261121" are dates, not seconds of the year 1970.
    if not (text.isdecimal() and len(text) in _DATE_LENGTHS):
        with suppress(ValueError):  # not a number
            return float(text)
    return seconds_of(text, zone, at)


def _finite(seconds: float) -> float:
    if not math.isfinite(seconds):
        raise ValueError
    return float(seconds)

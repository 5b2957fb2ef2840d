"""Parameters that several tools share: whose context, when, and how much."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, ConfigDict, Field

from storage.models import TimeRange, TimeType
from tools.core.errors import InvalidArgumentsError

__all__ = ["AgentId", "DeviceId", "TimeWindow", "TopK", "UserId"]

UserId = Annotated[str | None, Field(description="Whose; default: yours")]
DeviceId = Annotated[str | None, Field(description="Which device")]
AgentId = Annotated[str | None, Field(description="Which agent")]
TopK = Annotated[int, Field(ge=1, le=100, description="Most results")]

Instant = float | str


class TimeWindow(BaseModel):
    """A range of time, both ends included.

    Attributes:
        start: Unix seconds or ISO 8601.
        end: Unix seconds or ISO 8601.
        timezone: IANA zone of ISO times that name none; UTC by default.
        time_type: Which of a context's times is meant.
    """

    model_config = ConfigDict(extra="forbid")

    start: Annotated[Instant | None, Field(description="Unix seconds or ISO 8601")] = None
    end: Annotated[Instant | None, Field(description="Unix seconds or ISO 8601")] = None
    timezone: Annotated[str, Field(description="IANA zone of ISO times without one")] = "UTC"
    time_type: TimeType = TimeType.EVENT

    def to_range(self) -> TimeRange:
        """The range in Unix seconds.

        Raises:
            InvalidArgumentsError: If a time or the zone cannot be read, or the range is empty.
        """
        start, end = (
            _seconds(name, value, self.timezone)
            for name, value in (("start", self.start), ("end", self.end))
        )
        if start is not None and end is not None and start > end:
            raise InvalidArgumentsError(
                f"time_range.start ({self.start!r}) lies after time_range.end ({self.end!r}).",
                next_actions=("Swap them.",),
            )
        return TimeRange(start, end, self.time_type)


def _seconds(name: str, value: Instant | None, timezone: str) -> float | None:
    if value is None or isinstance(value, int | float):
        return value
    try:
        return float(value)
    except ValueError:
        pass
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC if timezone == "UTC" else ZoneInfo(timezone))
        return moment.timestamp()
    except (ZoneInfoNotFoundError, OSError) as error:
        raise InvalidArgumentsError(
            f"time_range.timezone: {timezone!r} is not a time zone.",
            next_actions=('Give an IANA name such as "Europe/Paris", or leave it out for UTC.',),
        ) from error
    except (ValueError, OverflowError) as error:
        raise InvalidArgumentsError(
            f"time_range.{name}: {value!r} is not a time.",
            next_actions=('Give Unix seconds, or ISO 8601 such as "2026-11-21T09:00".',),
        ) from error

"""Time buckets in UTC: a second, a day, an ISO week (Monday to Sunday), a month.

A bucket is a level and an integer that grows with time, so that buckets of a level compare and
count as integers. Its label is for people. The calendar is the proleptic Gregorian one of
`datetime`, years 1 to 9999; a moment outside it counts as its first or last.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from storage.models import TimeRange

SECOND, DAY, WEEK, MONTH = range(4)
"""The levels: an event itself, and the three kinds of summaries above it."""

_DAY_SECONDS = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_FIRST_DAY = date.min.toordinal() - _EPOCH_ORDINAL
_LAST_DAY = date.max.toordinal() - _EPOCH_ORDINAL
_FIRST_SECOND = _FIRST_DAY * _DAY_SECONDS
_LAST_SECOND = (_LAST_DAY + 1) * _DAY_SECONDS - 1
_THURSDAY = 3
"""1970-01-01 was a Thursday, the day that decides an ISO week's year and, here, its month."""

# Not those of the `calendar` module, which depend on the locale: titles are searched.
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

_FORMS = {
    SECOND: re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z", re.ASCII),
    DAY: re.compile(r"\d{4}-\d\d-\d\d", re.ASCII),
    WEEK: re.compile(r"(\d{4})-W(\d\d)", re.ASCII),
    MONTH: re.compile(r"\d{4}-\d\d", re.ASCII),
}


@dataclass(frozen=True, order=True, slots=True)
class Bucket:
    """A span of time."""

    level: int  # 0 a second, 1 a day, 2 an ISO week, 3 a month
    index: int  # in seconds, days or weeks since 1970-01-01, or months since the year 0

    @classmethod
    def of(cls, level: int, moment: float) -> Bucket:
        """Returns the bucket of a level that contains a moment."""
        second = math.floor(min(max(moment, _FIRST_SECOND), _LAST_SECOND))
        if level == SECOND:
            return cls(SECOND, second)
        return cls.of_day(level, second // _DAY_SECONDS)

    @classmethod
    def of_day(cls, level: int, day: int) -> Bucket:
        """Returns the day, week or month that contains a day, counted from 1970-01-01."""
        if level == DAY:
            return cls(DAY, day)
        if level == WEEK:
            return cls(WEEK, (day + _THURSDAY) // 7)
        on = _date(day)
        return cls(MONTH, on.year * 12 + on.month - 1)

    @classmethod
    def parse(cls, label: str) -> Bucket:
        """Parses a label; raises ValueError if it is none of an existing day, week or month."""
        for level, form in _FORMS.items():
            if found := form.fullmatch(label):
                return cls.of(level, _first_moment(level, found))
        raise ValueError(f"{label!r} is not a time bucket such as 2026-11-22, 2026-W47 or 2026-11.")

    @property
    def label(self) -> str:
        """Its name: `2026-11-22T09:30:00Z`, `2026-11-22`, `2026-W47` or `2026-11`."""
        if self.level == SECOND:
            return f"{(_EPOCH + timedelta(seconds=self.index)).isoformat()[:19]}Z"
        if self.level == DAY:
            return _date(self.index).isoformat()
        if self.level == WEEK:
            year, week, _ = _date(self._thursday).isocalendar()
            return f"{year:04}-W{week:02}"
        return f"{self.index // 12:04}-{self.index % 12 + 1:02}"

    @property
    def title(self) -> str:
        """Its title for people: `Sunday, 22 November 2026`, `Week 47 of 2026, …`, `June 2026`."""
        if self.level == MONTH:
            return f"{_MONTHS[self.index % 12]} {self.index // 12}"
        first, last = (_date(min(day, _LAST_DAY)) for day in (self.days[0], self.days[-1]))
        if self.level == WEEK:
            year, week, _ = _date(self._thursday).isocalendar()
            return f"Week {week} of {year}, {_format_date(first)} to {_format_date(last)}"
        return f"{_WEEKDAYS[first.weekday()]}, {_format_date(first)}"

    @property
    def days(self) -> range:
        """Its days, as days since 1970-01-01; for a second the day that contains it."""
        if self.level == SECOND:
            day = self.index // _DAY_SECONDS
            return range(day, day + 1)
        if self.level == DAY:
            return range(self.index, self.index + 1)
        if self.level == WEEK:
            return range(self._thursday - _THURSDAY, self._thursday - _THURSDAY + 7)
        return range(_first_of_month(self.index), _first_of_month(self.index + 1))

    @property
    def start(self) -> int:
        """Unix seconds at which it begins."""
        return self.index if self.level == SECOND else self.days.start * _DAY_SECONDS

    @property
    def end(self) -> int:
        """Unix seconds just after it ends."""
        return self.index + 1 if self.level == SECOND else self.days.stop * _DAY_SECONDS

    @property
    def month(self) -> Bucket:
        """The month it belongs to; for a week the month of its Thursday."""
        return Bucket.of_day(MONTH, self._thursday if self.level == WEEK else self.days.start)

    def overlaps(self, time_range: TimeRange) -> bool:
        """Returns whether it overlaps a range, which includes both its ends."""
        begins = time_range.end is None or self.start <= time_range.end
        return begins and (time_range.start is None or time_range.start < self.end)

    @property
    def _thursday(self) -> int:
        return self.index * 7


def _format_date(on: date) -> str:
    return f"{on.day} {_MONTHS[on.month - 1]} {on.year}"


def _date(day: int) -> date:
    return date.fromordinal(day + _EPOCH_ORDINAL)


def _first_of_month(month: int) -> int:
    year, number = divmod(month, 12)
    if year > date.max.year:
        return _LAST_DAY + 1
    return date(year, number + 1, 1).toordinal() - _EPOCH_ORDINAL


def _first_moment(level: int, found: re.Match[str]) -> float:
    match level:
        case 0:
            moment = datetime.fromisoformat(found[1])
        case 2:
            moment = datetime.fromisocalendar(int(found[1]), int(found[2]), 1)
        case 1:
            moment = datetime.fromisoformat(found[0])
        case _:
            moment = datetime.fromisoformat(f"{found[0]}-01")
    return (moment.replace(tzinfo=UTC) - _EPOCH).total_seconds()

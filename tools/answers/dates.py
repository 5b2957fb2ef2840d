"""Dates, zones and periods of time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tools.core.errors import InvalidArgumentsError


def zone_of(name: str, parameter: str = "timezone") -> tzinfo | None:
    """Returns the zone of an IANA name such as "Europe/Paris"; None, the machine's, for ""."""
    if not name:
        return None
    try:
        return UTC if name == "UTC" else ZoneInfo(name)  # UTC needs no zone files
    except (ZoneInfoNotFoundError, OSError, ValueError) as error:
        raise InvalidArgumentsError(
            f"{parameter}: {name!r} is not a time zone.",
            next_actions=('Give an IANA name such as "Europe/Paris", or leave it out.',),
        ) from error


PHRASES = (
    *("today", "yesterday", "tomorrow"),
    *("this week", "last week", "this month", "last month", "this year", "last year"),
    *("last weekend", "last 7 days", "last 30 days"),
)
"""Examples of accepted phrases, for completion."""

UNDERSTOOD = (
    'Give a date such as "2026-11-22" or "5 march", a week "2026-W47", a month "2026-11", a year,'
    ' two of them with "to" between, or words such as "yesterday", "last week", "monday",'
    ' "3 days ago".'
)

_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august"),
    *("september", "october", "november", "december"),
)
_WORDS = (
    *("one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_NUMBERS = {"a": 1, "an": 1} | {word: number for number, word in enumerate(_WORDS, start=1)}
_NEAR = {"today": 0, "yesterday": -1, "the day before yesterday": -2, "tomorrow": 1}
_TURNS = {"this": 0, "last": -1, "previous": -1, "next": 1}
_MICROSECOND = timedelta(microseconds=1)

_Days = tuple[date, date]


@dataclass(frozen=True, slots=True)
class Period:
    """A stretch of whole days in one time zone."""

    first: date
    last: date  # its last day, included
    zone: tzinfo | None  # where the days begin; None is the machine's

    @classmethod
    def parse(cls, text: str, zone: tzinfo | None, now: datetime) -> Period:
        """Parses a period in ISO 8601 or English, at a time `now`; weeks begin on Monday."""
        words = " ".join(text.lower().split()).removeprefix("on ").removeprefix("in ")
        today = now.astimezone(zone).date()
        try:
            first, last = _days_of(words, today)
            period = cls(first, last, zone)
            _ = period.start, period.end  # raises at the edges of the calendar
        except (ValueError, OverflowError) as error:
            raise InvalidArgumentsError(
                f"when: {text[:100]!r} names no time.", next_actions=(UNDERSTOOD,)
            ) from error
        return period

    @property
    def start(self) -> float:
        """Its first moment in Unix seconds."""
        return datetime.combine(self.first, time.min, self.zone).timestamp()

    @property
    def end(self) -> float:
        """Its last moment in Unix seconds, to the microsecond."""
        after = datetime.combine(self.last + timedelta(days=1), time.min, self.zone)
        return after.timestamp() - _MICROSECOND.total_seconds()

    @property
    def title(self) -> str:
        """Its days in ISO 8601, with the weekday of a single day."""
        if self.first == self.last:
            return f"{_DAYS[self.first.weekday()].capitalize()}, {self.first}"
        return f"{self.first} to {self.last}"


def _days_of(words: str, today: date) -> _Days:
    if words.startswith("since "):
        words = f"{words.removeprefix('since ')} to today"
    if found := re.fullmatch(r"(?:from )?(.+?) to (.+)|between (.+?) and (.+)", words):
        begin, end = filter(None, found.groups())
        first, last = _stretch(begin, today)[0], _stretch(end, today)[1]
        if first > last:
            raise ValueError(words)
        return first, last
    return _stretch(words, today)


def _stretch(words: str, today: date) -> _Days:
    """Parses a single period, without explicit ends."""
    for read in (_near, _turn, _last_few, _ago, _week_day, _named_month, _named_day):
        days = read(words, today)
        if days is not None:
            return days
    return _iso(words.upper())


def _near(words: str, today: date) -> _Days | None:
    return _day(today, _NEAR[words]) if words in _NEAR else None


def _turn(words: str, today: date) -> _Days | None:
    """Parses this, last or next week, weekend, month or year."""
    which, _, unit = words.partition(" ")
    if which not in _TURNS or unit not in _UNITS:
        return None
    return _UNITS[unit](today, _TURNS[which])


def _last_few(words: str, today: date) -> _Days | None:
    """Parses the last 7 days, or the last 3 weeks, months or years up to today."""
    found = re.fullmatch(r"(?:the )?(?:last|past) (\w+) (day|week|month|year)s?", words)
    count = None if found is None else _number(found[1])
    if found is None or count is None:
        return None
    if found[2] == "day":
        return today - timedelta(days=max(count - 1, 0)), today
    return _UNITS[found[2]](today, -count)[0], today


def _ago(words: str, today: date) -> _Days | None:
    """Parses a day, week, month or year ago."""
    found = re.fullmatch(r"(\w+) (day|week|month|year)s? ago", words)
    count = None if found is None else _number(found[1])
    if found is None or count is None:
        return None
    return _UNITS[found[2]](today, -count)


def _number(word: str) -> int | None:
    """Parses a number of up to four digits, or up to twelve in words."""
    return int(word) if re.fullmatch("[0-9]{1,4}", word) else _NUMBERS.get(word)


def _week_day(words: str, today: date) -> _Days | None:
    """Parses a weekday: the latest one, including today unless after "last"."""
    name = words.removeprefix("this ").removeprefix("last ")
    if name not in _DAYS:
        return None
    back = (today.weekday() - _DAYS.index(name)) % 7
    return _day(today, -(back or 7 * words.startswith("last ")))


def _named_month(words: str, today: date) -> _Days | None:
    """Parses a month, without a year the latest one; with "last", before this month."""
    name, _, year = words.removeprefix("last ").partition(" ")
    if name not in _MONTHS or not (year == "" or re.fullmatch(r"\d{4}", year)):
        return None
    month = _MONTHS.index(name) + 1
    latest = today.year - (month > today.month - words.startswith("last "))
    return _month(date(int(year or latest), month, 1), 0)


def _named_day(words: str, today: date) -> _Days | None:
    """Parses a day such as "5 march 2026" or "march 5"; without a year the latest one."""
    month = f"(?P<month>{'|'.join(_MONTHS)})"
    day, year = r"(?P<day>\d\d?)(?:st|nd|rd|th)?", r"(?:,? (?P<year>\d{4}))?"
    forms = (f"(?:the )?{day} (?:of )?{month}{year}", f"{month} (?:the )?{day}{year}")
    found = next(filter(None, (re.fullmatch(form, words, re.ASCII) for form in forms)), None)
    if found is None:
        return None
    number = _MONTHS.index(found["month"]) + 1
    latest = today.year - ((number, int(found["day"])) > (today.month, today.day))
    return _day(date(int(found["year"] or latest), number, int(found["day"])), 0)


def _iso(words: str) -> _Days:
    """Parses a day, week, month or year in ISO 8601."""
    if re.fullmatch(r"\d{4}", words):
        return _year(date(int(words), 1, 1), 0)
    if re.fullmatch(r"\d{4}-\d\d", words):
        return _month(date.fromisoformat(f"{words}-01"), 0)
    if re.fullmatch(r"\d{4}-?W\d\d", words):
        return _week(date.fromisoformat(words), 0)
    return _day(date.fromisoformat(words), 0)


def _day(today: date, steps: int) -> _Days:
    day = today + timedelta(days=steps)
    return day, day


def _week(today: date, steps: int) -> _Days:
    monday = today + timedelta(days=7 * steps - today.weekday())
    return monday, monday + timedelta(days=6)


def _weekend(today: date, steps: int) -> _Days:
    sunday = _week(today, steps)[1]
    return sunday - timedelta(days=1), sunday


def _month(today: date, steps: int) -> _Days:
    index = today.year * 12 + today.month - 1 + steps
    first = date(index // 12, index % 12 + 1, 1)
    after = (first + timedelta(days=31)).replace(day=1)
    return first, after - timedelta(days=1)


def _year(today: date, steps: int) -> _Days:
    year = today.year + steps
    return date(year, 1, 1), date(year, 12, 31)


_UNITS: dict[str, Callable[[date, int], _Days]] = {
    "day": _day,
    "week": _week,
    "weekend": _weekend,
    "month": _month,
    "year": _year,
}

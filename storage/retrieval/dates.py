"""Dates that a query names: "8 May 2023", "in June", "2023-05", "2021年5月"."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

__all__ = ["NamedDate", "named_dates"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_DATE = re.compile(
    rf"(?P<from>\b(?:after|before|by|during|from|in|last|next|of|since|this|until)\s)?"
    rf"(?:\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s(?:of\s)?)?\b(?P<month>{_MONTH})\b\.?"
    rf"(?:\s(?P<day_after>\d{{1,2}})(?:st|nd|rd|th)?\b)?(?:,?\s(?P<year>\d{{4}})\b)?"
    r"|\b(?P<iso_year>\d{4})-(?P<iso_month>\d\d)(?:-(?P<iso_day>\d\d))?\b"
    r"|(?P<cjk_year>\d{4})年(?:(?P<cjk_month>\d{1,2})月(?:(?P<cjk_day>\d{1,2})[日号])?)?"
    r"|\b(?P<bare_year>(?:19|20)\d\d)\b",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class NamedDate:
    """A day, a month or a year, as far as it was said; at least one part was.

    Attributes:
        year: None where any year is meant, as in "in June".
        month: 1 to 12; None where any month is meant.
        day: 1 to 31; None where any day is meant.
    """

    year: int | None
    month: int | None = None
    day: int | None = None

    def covers(self, moment: float) -> bool:
        """Whether a moment, in Unix seconds, lies within it, UTC."""
        try:
            when = _EPOCH + timedelta(seconds=moment)
        except OverflowError:  # no calendar has it
            return False
        parts = ((self.year, when.year), (self.month, when.month), (self.day, when.day))
        return all(wanted in {None, found} for wanted, found in parts)


def named_dates(text: str) -> tuple[NamedDate, ...]:
    """The dates in a text, in its order, each once.

    A month alone counts where a word like "in" or "last" says that a date is meant: "May" and
    "April" are other words too.
    """
    found = (_date(match) for match in _DATE.finditer(" ".join(text.split())))
    return tuple(dict.fromkeys(date for date in found if date is not None))


def _date(match: re.Match[str]) -> NamedDate | None:
    named = {name: value for name, value in match.groupdict().items() if value}
    if "month" not in named:
        parts = [value for name, value in named.items() if name != "from"]
        return NamedDate(*map(int, parts))
    if not named.keys() & {"from", "day", "day_after", "year"}:
        return None
    day = named.get("day") or named.get("day_after")
    return NamedDate(
        year=int(named["year"]) if "year" in named else None,
        month=1 + _MONTHS.index(named["month"][:3].lower()),
        day=int(day) if day else None,
    )

"""Finds dates in a text, absolute or relative, in English, German and Chinese.

"8 May 2023", "im Mai" and "2023年5月8日" are absolute. "Last Friday", "vor zwei Wochen" and
"上周" are relative: in a question to the date that it also names or to today, in a turn to its own
day. In "two weeks before the trip" the day of the trip must be found first. Days are in UTC, and
weeks begin on Monday.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

# The patterns are strings, which `re` compiles and caches on first use, so that startup stays fast.

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_DAY = _EPOCH.date()
_MONTHS = {
    name: 1 + number
    for number, names in enumerate(
        "jan feb mar,mär apr may,mai jun jul aug sep oct,okt nov dec,dez".split()  # noqa: SIM905  # words read best as text
    )
    for name in names.split(",")
}
_MONTH = (
    r"jan(?:uary?)?|feb(?:ruary?)?|mar(?:ch)?|märz|apr(?:il)?|mai|may|june?|juni|july?|juli"
    r"|aug(?:ust)?|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?"
)
_FROM = (
    r"after|am|before|bis|by|during|from|im|in|last|letzten|next|nächsten|of|seit|since|this|until"
    r"|vom"
)
_DATE = (
    rf"(?ia)(?P<from>\b(?:{_FROM})\s)?"
    rf"(?:\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s(?:of\s)?)?\b(?P<month>{_MONTH})\b\.?"
    rf"(?:\s(?P<day_after>\d{{1,2}})(?:st|nd|rd|th)?\b(?![:.]\d))?(?:,?\s(?P<year>\d{{4}})\b)?"
    r"|\b(?P<iso_year>\d{4})-(?P<iso_month>\d\d)(?:-(?P<iso_day>\d\d))?\b"
    r"|\b(?P<dot_day>\d{1,2})\.\s?(?P<dot_month>\d{1,2})\.\s?(?P<dot_year>\d{4})\b"
    r"|(?P<cjk_year>\d{4})年(?:(?P<cjk_month>\d{1,2})月(?:(?P<cjk_day>\d{1,2})[日号])?)?"
    r"|(?P<any_month>\d{1,2})月(?:(?P<any_day>\d{1,2})[日号])?"
    r"|\b(?P<bare_year>(?:19|20)\d\d)\b"
)

_DAYS = {
    "day before yesterday": -2,
    "yesterday": -1,
    "last night": -1,
    "today": 0,
    "tonight": 0,
    "this morning": 0,
    "this evening": 0,
    "day after tomorrow": 2,
    "tomorrow": 1,
    "vorgestern": -2,
    "gestern": -1,
    "heute": 0,
    "übermorgen": 2,
    **dict.fromkeys(("前天",), -2),
    **dict.fromkeys(("昨天", "昨日", "昨晚"), -1),
    **dict.fromkeys(("今天", "今日", "今早", "今晚"), 0),
    **dict.fromkeys(("明天", "明日"), 1),
    **dict.fromkeys(("后天", "後天"), 2),
}
_DAY_WORD = rf"\b(?:{'|'.join(word for word in _DAYS if word.isascii() or word[0] == 'ü')})\b"
_CJK_DAY_WORD = "|".join(word for word in _DAYS if word[0] >= "\u4e00")

_COUNTS = {
    word: 1 + number
    for number, words in enumerate(
        (
            "a an one ein eine einem einen einer 一",
            "two zwei couple 二 两 兩",
            "three drei few einigen 三 几 幾",
            "four vier 四",
            "five fünf 五",
            "six sechs 六",
            "seven sieben 七",
            "eight acht 八",
            "nine neun 九",
            "ten zehn 十",
            "eleven elf 十一",
            "twelve zwölf 十二",
        )
    )
    for word in words.split()
}
_WEEKDAYS = {"mo": 0, "tu": 1, "di": 1, "we": 2, "mi": 2, "th": 3, "do": 3, "fr": 4, "sa": 5}
_WEEKDAYS |= {"su": 6, "so": 6} | dict(zip("一二三四五六日", range(7), strict=True)) | {"天": 6}
_WEEKDAY = (
    r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
    r"|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch|sonnabend"
)
_UNITS = {
    word: unit
    for unit, words in {
        "day": "day tag 天 日",
        "weekend": "weekend wochenende 周末 週末",
        "week": "week woche 周 週 星期 礼拜 禮拜",
        "month": "month monat 月",
        "year": "year jahr 年",
    }.items()
    for word in words.split()
}
_UNIT = r"days?|weekends?|weeks?|months?|years?|tage?n?|wochenenden?|wochen?|monate?n?|jahre?n?"
_NUMBER = (
    rf"\d{{1,3}}|(?:a|ein)\s(?:few|couple|paar)|{'|'.join(word for word in _COUNTS if word < '一')}"
)
_WHICH = (
    r"(?P<last>last|past|previous|letzte[mnrs]?|vergangene[mnrs]?|vorige[mnrs]?)"
    r"|(?P<next>next|coming|kommende[mnrs]?|nächste[mnrs]?)|this|diese[mnrs]?"
)
_CJK_UNIT = "天|日|周末|週末|周|週|星期|礼拜|禮拜|月|年"
_CJK_NUMBER = r"\d{1,3}|十[一二]|[一二两兩三四五六七八九十几幾]"
_CJK_YEARS = {"前年": -2, "去年": -1, "今年": 0, "明年": 1}

_RELATIVE = (
    rf"(?P<word>{_DAY_WORD}|{_CJK_DAY_WORD})"
    rf"|\b(?:{_WHICH})\s(?P<unit>{_UNIT}|{_WEEKDAY})\b"
    rf"|\b(?P<ago>{_NUMBER})\s(?:of\s)?(?P<ago_unit>{_UNIT})\s(?:ago|earlier)\b"
    rf"|\bvor\s(?P<vor>{_NUMBER})\s(?P<vor_unit>{_UNIT})\b"
    rf"|\b(?:on|am)\s(?P<weekday>{_WEEKDAY})\b(?!\s(?:after|before|nach|vor)\b)"
    r"|(?P<cjk_which>[上这這本下])一?[个個]?"
    r"(?P<cjk_unit>(?:周|週|星期|礼拜|禮拜)(?:[一二三四五六日天]|末)?|月)"
    rf"|(?P<cjk_years>{'|'.join(_CJK_YEARS)})"
    rf"|(?P<cjk_ago>{_CJK_NUMBER})[个個]?(?P<cjk_ago_unit>{_CJK_UNIT})[以之]?前(?![天年])"
)
# A text without any of these has no relative date; this skips most turns.
_HINTS = (
    *(word for word in _DAYS if " " not in word),
    *("last", "past", "previous", "letzte", "vergangene", "vorige", "next", "coming", "nächste"),
    *("kommende", "this", "diese", " ago", " earlier", "vor ", "on ", "am ", "前"),
    *("上", "这", "這", "本", "下", *_CJK_YEARS),
)

_FROM_EVENT = (
    rf"(?i)\b(?:(?P<count>{_NUMBER})\s(?:of\s)?)?(?P<unit>{_UNIT}|{_WEEKDAY})\s"
    r"(?:(?P<before>before|prior\sto|vor)|after|nach)\s(?!yesterday|tomorrow)(?P<event>(?:[^,;.?!]|,\s?\d)+)"
    r"|(?P<cjk_event>[^,;.?!\s\uff0c\u3002\uff1f\uff01在]{1,20}?)的?[以之]?(?:(?P<cjk_before>前)|[后後])的?"
    rf"(?P<cjk_count>{_CJK_NUMBER})[个個]?(?P<cjk_unit>{_CJK_UNIT})"
)
_PART_BEFORE = (
    r"(?i)\b(?:(?P<early>early|beginning|start|anfang)|(?P<mid>mid|middle|mitte)|(?P<late>late|end"
    r"|ende)|(?P<nth>first|second|third|fourth|last|erste[nrs]?|zweite[nrs]?|dritte[nrs]?"
    r"|vierte[nrs]?|letzte[nrs]?)\s(?P<unit>week|weekend|woche|wochenende))[\s-]*$"
)
_PART_AFTER = r"的?(?:(?P<early>初|上旬)|(?P<mid>中)|(?P<late>底|末|下旬))"
_NTH = {"fi": 0, "er": 0, "se": 1, "zw": 1, "th": 2, "dr": 2, "fo": 3, "vi": 3, "la": -1, "le": -1}

# The tolerance in days of a distance in days or weeks, since people round it.
_SPREAD = {"day": 1, "week": 3}


@dataclass(frozen=True, slots=True)
class NamedDate:
    """A day, a month or a year, as far as it was given; at least one part is set."""

    year: int | None  # None for any year, as in "in June"
    month: int | None = None  # 1 to 12; None for any month
    day: int | None = None  # 1 to 31; None for any day

    def covers(self, moment: float) -> bool:
        """Returns whether a moment, in Unix seconds, is within it, UTC."""
        when = _date_of(moment)
        if when is None:
            return False
        parts = ((self.year, when.year), (self.month, when.month), (self.day, when.day))
        return all(wanted in {None, found} for wanted, found in parts)

    @property
    def day_span(self) -> Span | None:
        """Its single day, if it is a valid one."""
        if self.year is None or self.month is None or self.day is None:
            return None
        try:
            day = date(self.year, self.month, self.day)
        except ValueError:
            return None
        return Span(day, day)


@dataclass(frozen=True, slots=True)
class Span:
    """A range of days, both ends included."""

    first: date
    last: date

    @property
    def middle(self) -> float:
        """The moment in its middle, in Unix seconds."""
        days = (self.first - _FIRST_DAY).days + (self.last - _FIRST_DAY).days + 1
        return days * 43_200.0

    def covers(self, moment: float) -> bool:
        """Returns whether a moment, in Unix seconds, is within it, UTC."""
        when = _date_of(moment)
        return when is not None and self.first <= when <= self.last


@dataclass(frozen=True, slots=True)
class Distance:
    """A time relative to an event, as in "two weeks before the trip"."""

    event: str
    count: int  # the number of units after it; negative for before it
    unit: str | int  # "day", "week", "weekend", "month", "year", or the number of a weekday
    counted: bool  # whether a number was given: "the week before" ends at the event

    def span(self, moment: float) -> Span | None:
        """Returns the days, for an event at a moment; None if they are outside the calendar."""
        when = _date_of(moment)
        if when is None:
            return None
        try:
            if self.unit == "week" and not self.counted:
                ends = sorted((when + timedelta(self.count), when + timedelta(7 * self.count)))
                return Span(*ends)
            return _shift(when, self.count, self.unit, counted=self.counted)
        except (OverflowError, ValueError):
            return None


def named_dates(text: str) -> tuple[NamedDate | Span, ...]:
    """Returns the absolute dates in a text, in order and without duplicates.

    A month alone counts only after a word like "in" or "last", because "May" and "April" are other
    words too. "Early May 2023" and "the last week of May 2023" are spans.
    """
    text = " ".join(text.split())
    found = (_parse_date(text, match) for match in re.finditer(_DATE, text))
    return tuple(dict.fromkeys(date for date in found if date is not None))


def spans_named(text: str, moment: float) -> tuple[Span, ...]:
    """Returns the days of relative dates, such as "yesterday", in a text written at a moment."""
    when = _date_of(moment)
    if when is None:
        return ()
    found = []
    text = " ".join(text.lower().split())
    if not any(hint in text for hint in _HINTS):
        return ()
    for match in re.finditer(_RELATIVE, text):
        try:
            found.append(_relative(match, when))
        except (OverflowError, ValueError):  # outside the calendar
            continue
    return tuple(dict.fromkeys(found))


def distances(text: str) -> Iterator[Distance]:
    """Yields the times that a text gives relative to an event or a date."""
    for match in re.finditer(_FROM_EVENT, " ".join(text.split())):
        event = match["event"] or match["cjk_event"]
        number = match["count"] or match["cjk_count"]
        unit = _unit(match["unit"] or match["cjk_unit"])
        sign = -1 if match["before"] or match["cjk_before"] else 1
        yield Distance(event, sign * _count(number or "one"), unit, counted=bool(number))


def _date_of(moment: float) -> date | None:
    try:
        return (_EPOCH + timedelta(seconds=moment)).date()
    except OverflowError:  # outside the calendar
        return None


def _parse_date(text: str, match: re.Match[str]) -> NamedDate | Span | None:
    named = {name: value for name, value in match.groupdict().items() if value}
    if "month" in named:
        if not named.keys() & {"from", "day", "day_after", "year"}:
            return None
        month = _MONTHS[named["month"][:3].lower()]
    else:
        months = (value for name, value in named.items() if name.endswith("_month"))
        month = int(next(months, "0"))
    years = (value for name, value in named.items() if name.endswith("year"))
    days = (value for name, value in named.items() if "day" in name)
    year, day = next(years, None), next(days, None)
    found = NamedDate(int(year) if year else None, month or None, int(day) if day else None)
    if found.year and found.month and not found.day:
        return _part(found.year, found.month, text[: match.start()], text[match.end() :]) or found
    return found


def _part(year: int, month: int, before: str, after: str) -> Span | None:
    """Returns the part of a month that the words around it name."""
    part = re.search(_PART_BEFORE, before) or re.match(_PART_AFTER, after)
    if part is None or not date.min.year <= year <= date.max.year or month not in _MONTHS.values():
        return None
    first, last = _month(year, month)
    named = part.groupdict()
    nth = named.get("nth")
    if nth is None:
        begin = 0 if named["early"] else 10 if named["mid"] else 20
        return Span(first + timedelta(begin), min(last, first + timedelta(begin + 10)))
    place = _NTH[nth[:2].lower()]
    if _unit(named["unit"]) == "week":
        start = last - timedelta(6) if place < 0 else first + timedelta(7 * place)
        return Span(start, start + timedelta(6))
    saturday = first + timedelta((5 - first.weekday()) % 7 + 7 * place)
    if place < 0:
        saturday = last - timedelta((last.weekday() - 5) % 7)
    return Span(saturday, saturday + timedelta(1))


def _relative(match: re.Match[str], when: date) -> Span:
    named = {name: value for name, value in match.groupdict().items() if value}
    if "word" in named:
        return _shift(when, _DAYS[named["word"]], "day")
    if "cjk_years" in named:
        return _shift(when, _CJK_YEARS[named["cjk_years"]], "year")
    for count, unit in (("ago", "ago_unit"), ("vor", "vor_unit"), ("cjk_ago", "cjk_ago_unit")):
        if count in named:
            return _shift(when, -_count(named[count]), _unit(named[unit]), counted=True)
    if "cjk_which" in named:
        return _chinese(named["cjk_which"], named["cjk_unit"], when)
    if "weekday" in named:
        return _shift(when, -1, _unit(named["weekday"]))
    return _shift(when, ("next" in named) - ("last" in named), _unit(named["unit"]))


def _chinese(which: str, unit: str, when: date) -> Span:
    """Returns a week, weekend or month, or a weekday of the given week, not the latest one."""
    count = {"上": -1, "下": 1}.get(which, 0)
    if unit in _UNITS:
        return _shift(when, count, _UNITS[unit])
    return _shift(when + timedelta(7 * count), 0, _WEEKDAYS[unit[-1]])


def _shift(when: date, count: int, unit: str | int, *, counted: bool = False) -> Span:
    """Returns the day, week, month, year or weekday that many units after a date."""
    if isinstance(unit, int):
        ahead = unit - when.weekday()  # within this week
        if count > 0:
            ahead = (ahead % 7 or 7) + 7 * (count - 1)
        elif count < 0:
            ahead = 7 * (count + 1) - (-ahead % 7 or 7)
        day = when + timedelta(ahead)
        return Span(day, day)
    if unit == "year":
        return Span(date(when.year + count, 1, 1), date(when.year + count, 12, 31))
    if unit == "month":
        months = when.year * 12 + when.month - 1 + count
        return Span(*_month(months // 12, months % 12 + 1))
    if unit == "weekend":
        saturday = when - timedelta(when.weekday() - 5 - 7 * count)
        return Span(saturday, saturday + timedelta(1))
    if unit == "week" and not counted:
        monday = when - timedelta(when.weekday() - 7 * count)
        return Span(monday, monday + timedelta(6))
    day = when + timedelta(count * (7 if unit == "week" else 1))
    spread = timedelta(_SPREAD[unit] if counted and (unit, abs(count)) != ("day", 1) else 0)
    return Span(day - spread, day + spread)


def _month(year: int, month: int) -> tuple[date, date]:
    first = date(year, month, 1)
    following = date(year + month // 12, month % 12 + 1, 1)
    return first, following - timedelta(1)


def _unit(words: str) -> str | int:
    words = words.lower()
    if words == "sonnabend":
        return 5
    known = (_UNITS[words[:size]] for size in range(len(words), 0, -1) if words[:size] in _UNITS)
    unit = next(known, None)
    return _WEEKDAYS[words[:2]] if unit is None else unit


def _count(words: str) -> int:
    last = words.lower().split()[-1]
    return int(last) if last.isdecimal() else _COUNTS.get(last, 3)

"""Items: parses a text or an object to its citation, title, year and details."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from storage.directory.models import Item

_CITED = ("authors", "author", "title", "name", "journal", "venue", "publisher", "agency", "funder")
"""The values of an object that form its citation, in this order; the year comes last."""

_TEXTS = ("text", "citation")
_TITLES = ("title", "name")
_DATES = ("year", "date", "published", "publication_date", "publication_year", "start_date")
_EARLIEST = 1900
_YEAR = re.compile(r"(?<![A-Za-z0-9])(?:19|20)[0-9]{2}(?![0-9])")
_NAMED_YEAR = re.compile(r"\s*(1[0-9]{3})(?![0-9])")
_PARENTHESES = re.compile(
    r"[(\uff08\[][^()\uff08\uff09\[\]]*?(?<![A-Za-z0-9])((?:19|20)[0-9]{2})(?![0-9])"
)
_BEFORE_PAGE = re.compile(r"(?:[-:/#\u2010-\u2014]\s*|[a-z0-9]\.|\bpp?\.?\s*)$")
_AFTER_PAGE = re.compile(r"\s?[-\u2010-\u2014/]\s?\d")


def item_of(value: object) -> Item | None:
    """Parses a text or an object to an item; None if it is empty.

    An object is cited by its authors, title, journal and year, unless it has a `text` or
    `citation`. Its other values become details. Raises ValueError if it is anything else; the
    message says what is expected.
    """
    if value is None:
        return None
    if isinstance(value, str):
        text = " ".join(value.split())
        return Item(text=text, year=year_in(text)) if text else None
    if not isinstance(value, Mapping):
        raise ValueError("a text or an object with a title")  # noqa: TRY004  # of a file's value
    words = {str(name): _in_words(name, each) for name, each in value.items()}
    lower = {name.strip().casefold(): each for name, each in words.items()}
    text = next((lower[name] for name in _TEXTS if lower.get(name)), "") or _citation_of(lower)
    if not text:
        if any(words.values()):
            raise ValueError("a title or a text in it")
        return None
    used = {*_TEXTS, *_TITLES, "year"}
    return Item(
        text=text,
        title=next((lower[name] for name in _TITLES if lower.get(name)), ""),
        year=_year(value, text),
        details={
            name: each
            for name, each in words.items()
            if each and name.strip().casefold() not in used
        },
    )


def year_in(text: str) -> int | None:
    """Returns the year of a citation: the one in parentheses, else the last that is not a page.

    A year lies between 1900 and next year. Returns None if there is none.
    """
    latest = datetime.now(UTC).year + 1
    for match in _PARENTHESES.finditer(text):
        if _EARLIEST <= int(match[1]) <= latest:
            return int(match[1])
    found = [match for match in _YEAR.finditer(text) if int(match[0]) <= latest]
    sure = [match for match in found if not _may_be_page(text, match)]
    return int((sure or found)[-1][0]) if found else None


def _may_be_page(text: str, match: re.Match[str]) -> bool:
    """Returns whether a number may be a page, or part of a range or an identifier."""
    before = _BEFORE_PAGE.search(text, max(0, match.start() - 5), match.start())
    return before is not None or _AFTER_PAGE.match(text, match.end()) is not None


def _citation_of(values: Mapping[str, str]) -> str:
    title = next((values[name] for name in _TITLES if values.get(name)), "")
    if not title:
        return ""
    parts = [values[name] for name in _CITED if values.get(name)]
    year = values.get("year", "")
    parts += [year] if year and not any(year in part for part in parts) else []
    return " ".join(part if part.endswith((".", "?", "!")) else f"{part}." for part in parts)


def _year(value: Mapping[str, object], text: str) -> int | None:
    lower = {str(name).strip().casefold(): each for name, each in value.items()}
    for name in _DATES:
        each = lower.get(name)
        if each is None or each == "":
            continue
        if isinstance(each, bool) or not isinstance(each, str | int | float):
            raise ValueError(f"a {name} like 2020")  # noqa: TRY004  # of a file's value
        old = _NAMED_YEAR.match(str(each))  # a year field may hold any year
        year = year_in(str(each)) or (int(old[1]) if old else None)
        if year is None and not isinstance(each, str):
            raise ValueError(f"a {name} like 2020")
        if year is not None:
            return year
    return year_in(text)


def _in_words(name: object, value: object) -> str:
    match value:
        case None:
            return ""
        case str() | int() | float():
            return " ".join(str(value).split())
        case list():
            return ", ".join(filter(None, (_in_words(name, each) for each in value)))
        case Mapping():
            if value.get("name"):
                return _in_words(name, value["name"])
            return " ".join(filter(None, (_in_words(name, each) for each in value.values())))
        case _:
            raise ValueError(f"a text as its {name}")

"""Items as they are cited: from a text or an object to its text, title, year and details."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from storage.directory.models import Item

_CITED = ("authors", "author", "title", "name", "journal", "venue", "publisher", "agency", "funder")
"""Values of an object that its citation consists of, in this order; the year comes last."""

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
    """The item that a text or an object is; None where it says nothing.

    An object is cited as its authors, title, journal and year, unless it brings its citation as
    `text` or `citation`. Everything else that it says is kept among the details.

    Raises:
        ValueError: If it is something else; the message says what is expected.
    """
    if value is None:
        return None
    if isinstance(value, str):
        text = " ".join(value.split())
        return Item(text=text, year=year_in(text)) if text else None
    if not isinstance(value, Mapping):
        raise ValueError("a text or an object with a title")  # noqa: TRY004  # of a file's value
    said = {str(name): _in_words(name, each) for name, each in value.items()}
    lower = {name.strip().casefold(): each for name, each in said.items()}
    text = next((lower[name] for name in _TEXTS if lower.get(name)), "") or _cited(lower)
    if not text:
        if any(said.values()):
            raise ValueError("a title or a text in it")
        return None
    used = {*_TEXTS, *_TITLES, "year"}
    return Item(
        text=text,
        title=next((lower[name] for name in _TITLES if lower.get(name)), ""),
        year=_year(value, text),
        details={
            name: each
            for name, each in said.items()
            if each and name.strip().casefold() not in used
        },
    )


def year_in(text: str) -> int | None:
    """The year of a citation: the one in parentheses, or the last that is no page; None without.

    A year is one from 1900 to the next.
    """
    latest = datetime.now(UTC).year + 1
    for match in _PARENTHESES.finditer(text):
        if _EARLIEST <= int(match[1]) <= latest:
            return int(match[1])
    found = [match for match in _YEAR.finditer(text) if int(match[0]) <= latest]
    sure = [match for match in found if not _may_be_page(text, match)]
    return int((sure or found)[-1][0]) if found else None


def _may_be_page(text: str, match: re.Match[str]) -> bool:
    """Whether a number is rather a page, or a part of a range or of an identifier."""
    before = _BEFORE_PAGE.search(text, max(0, match.start() - 5), match.start())
    return before is not None or _AFTER_PAGE.match(text, match.end()) is not None


def _cited(said: Mapping[str, str]) -> str:
    title = next((said[name] for name in _TITLES if said.get(name)), "")
    if not title:
        return ""
    parts = [said[name] for name in _CITED if said.get(name)]
    year = said.get("year", "")
    parts += [year] if year and not any(year in part for part in parts) else []
    return " ".join(part if part.endswith((".", "?", "!")) else f"{part}." for part in parts)


def _year(value: Mapping[str, object], text: str) -> int | None:
    """The year that an object names, or that its text does."""
    lower = {str(name).strip().casefold(): each for name, each in value.items()}
    for name in _DATES:
        each = lower.get(name)
        if each is None or each == "":
            continue
        if isinstance(each, bool) or not isinstance(each, str | int | float):
            raise ValueError(f"a {name} like 2020")  # noqa: TRY004  # of a file's value
        old = _NAMED_YEAR.match(str(each))  # what a field names as its year may be of any time
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

"""Parses the values of a file's fields, and explains which values are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from storage.directory.models import Item
from storage.errors import InvalidSourceError
from storage.index.bounded import clip
from storage.tokenize import fold

MAX_NAME = 300  # maximum characters of a name, or of a group's name
MAX_FACT = 4000  # maximum characters of a fact; anything longer belongs in a text field

_SHOWN = 80
_LIST = re.compile(r";")
_ITEM_LIST = re.compile(r";(?!\s*\d)|\n")  # "Nature. 2020;15:3" is one
_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROLS = re.compile(r"[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


class RecordValues:
    """Parses the values of one record."""

    def __init__(self, number: int) -> None:
        self._number = number

    def refusal(self, field: str, value: object, expected: str) -> InvalidSourceError:
        """Returns the error for a value that a field does not accept."""
        shown = json.dumps(value, ensure_ascii=False, default=str)
        cut = clip(shown, _SHOWN)
        return InvalidSourceError(
            f"Record {self._number}: {field} is {cut}; {expected} is expected.",
            suggestions=("Correct that value in the file, or leave the field out.",),
        )

    def line(self, field: str, value: object, most: int = MAX_FACT) -> str:
        """Returns a value as one line of text; empty for null."""
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise self.refusal(field, value, "a text")
        line = " ".join(_clean(str(value)).split())
        if len(line) > most:
            raise self.refusal(field, value, f"a text of at most {most} characters")
        return line

    def names(self, field: str, value: object) -> tuple[str, ...]:
        """Returns the values of a list, or of a text with semicolons or bars, each once."""
        each_once: dict[str, str] = {}
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        for each in [value] if is_number else self._several(field, value, _LIST):
            line = self.line(field, each, MAX_NAME)
            if line:
                each_once.setdefault(fold(line), line)
        return tuple(each_once.values())

    def text(self, field: str, value: object) -> str:
        """Returns running text; the entries of a list are joined by semicolons."""
        if isinstance(value, str):
            value = _array(value) or value
        if isinstance(value, list):
            return "; ".join(filter(None, (self.text(field, each) for each in value)))
        if value is not None and not isinstance(value, str):
            raise self.refusal(field, value, "a text or a list of texts")
        return _clean(value or "").strip()

    def items(self, field: str, value: object) -> tuple[Item, ...]:
        """Returns the items of a list, or of a text split at bars, line ends or semicolons."""
        items = []
        for place, each in enumerate(self._several(field, value, _ITEM_LIST), start=1):
            try:
                item = item_of(_clean_value(each))
            except ValueError as error:
                raise self.refusal(f"{field} {place}", each, str(error)) from None
            if item is not None:
                items.append(item)
        return tuple(items)

    def fact(self, field: str, value: object) -> str:
        """Returns any value as text: lists joined by commas, objects with their keys."""
        fact = _clean(_in_words(value)).strip()
        if len(fact) > MAX_FACT:
            expected = f"a text of at most {MAX_FACT} characters, in a field that is not in texts,"
            raise self.refusal(field, value, expected)
        return fact

    def _several(self, field: str, value: object, between: re.Pattern[str]) -> list[Any]:
        if value is None:
            return []
        if isinstance(value, str):
            return _array(value) or (value.split("|") if "|" in value else between.split(value))
        if isinstance(value, list):
            return value
        if isinstance(value, dict):
            return [value]
        raise self.refusal(field, value, "a list or a text")


def _array(text: str) -> list[Any] | None:
    """Parses a text as a JSON array; None if it is not one."""
    if not text.lstrip().startswith("["):
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, list) else None


def _in_words(value: object) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(filter(None, map(_in_words, value)))
        case dict():
            pairs = ((name, _in_words(each)) for name, each in value.items())
            return "; ".join(f"{name}: {each}" for name, each in pairs if each)
        case _:
            return str(value)


def _clean_value(value: object) -> object:
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, Mapping):
        return {_clean(str(name)): _clean_value(each) for name, each in value.items()}
    return [_clean_value(each) for each in value] if isinstance(value, list) else value


def _clean(text: str) -> str:
    """Replaces unpaired surrogates, and removes control characters that a terminal would obey."""
    return _SURROGATES.sub("\ufffd", _CONTROLS.sub(" ", text))


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
    words = {str(name): _item_words(name, each) for name, each in value.items()}
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


def _item_words(name: object, value: object) -> str:
    match value:
        case None:
            return ""
        case str() | int() | float():
            return " ".join(str(value).split())
        case list():
            return ", ".join(filter(None, (_item_words(name, each) for each in value)))
        case Mapping():
            if value.get("name"):
                return _item_words(name, value["name"])
            return " ".join(filter(None, (_item_words(name, each) for each in value.values())))
        case _:
            raise ValueError(f"a text as its {name}")

"""Parses the values of a file's fields, and explains which values are refused."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from storage.directory.citations import item_of
from storage.directory.models import Item
from storage.errors import InvalidSourceError
from storage.people.names import fold
from storage.reading.shorten import clip

MAX_NAME = 300
"""Maximum characters of a name, or of a group's name."""

MAX_FACT = 4000
"""Maximum characters of a fact; anything longer belongs in a text field."""

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

"""Encodes the values of an operation's parameters (OpenAPI 3.1, "Style Values")."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tools.core.errors import InvalidArgumentsError
from tools.openapi.description import UnusableError, pairs, text_of

_STYLES = {"path": "simple", "query": "form", "header": "simple", "cookie": "form"}
"""The default style of a parameter, by its place."""

_SEPARATORS = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
_PREFIXES = {"simple": "", "label": ".", "matrix": ";"}

_RESERVED = ":/?@!$'()*,;"
"""Characters that `allowReserved` keeps, except those that would end a value or start another."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter, or a property of a form."""

    name: str
    place: str  # path, query, header or cookie
    schema: object
    description: str = ""
    required: bool = False
    style: str = "form"  # the encoding of lists and objects; json for JSON text
    explode: bool = True  # whether each of their values is encoded separately
    reserved: bool = False  # whether characters with a meaning in URLs stay

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Parameter:
        """Reads a parameter of a description."""
        name, place = text_of(given.get("name")), text_of(given.get("in"))
        if place not in _STYLES or not name:
            raise UnusableError(f"its parameter {name!r} is in {place!r}")
        content = pairs(given.get("content"))
        style = text_of(given.get("style")) or _STYLES[place]
        schema = given.get("schema")
        if content:
            schema, style = pairs(next(iter(content.values()))).get("schema"), "json"
        return cls(
            name=name,
            place=place,
            schema=schema,
            description=text_of(given.get("description")),
            required=given.get("required") is True or place == "path",
            style=style,
            explode=_flag(given, "explode", default=style == "form"),
            reserved=given.get("allowReserved") is True,
        )

    @classmethod
    def of_form(cls, name: str, encoding: Mapping[str, Any]) -> Parameter:
        """Returns a property of a form, given its `encoding` in the description."""
        style = text_of(encoding.get("style")) or "form"
        explode = _flag(encoding, "explode", default=style == "form")
        reserved = encoding.get("allowReserved") is True
        return cls(name, "query", None, style=style, explode=explode, reserved=reserved)

    def in_path(self, value: Any) -> str:  # noqa: ANN401  # any JSON value
        """Returns its value for the path, which can never become another segment."""
        prefix = _PREFIXES.get(self.style, "")
        assigns = self.style == "matrix"
        name = quote(self.name, safe="")
        joiner = prefix if self.explode and prefix else ","
        match value:
            case dict() if self.explode:
                texts = [f"{self._text(key)}={self._text(each)}" for key, each in value.items()]
            case dict():
                texts = [self._text(each) for pair in value.items() for each in pair]
            case list() if assigns and self.explode:
                texts = [f"{name}={self._text(each)}" for each in value]
            case list():
                texts = [self._text(each) for each in value]
            case _:
                texts = [self._text(value)]
        text = joiner.join(texts)
        if assigns and not (self.explode and isinstance(value, dict | list)):
            text = f"{name}={text}"
        if text in {"", ".", ".."}:
            raise InvalidArgumentsError(
                f"{self.name}: {text!r} is not allowed in the path.",
                next_actions=["Give a value that is neither empty nor '.' or '..'."],
            )
        return prefix + text

    def in_query(self, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401  # any JSON value
        """Yields percent-encoded names and values for the query."""
        name = quote(self.name, safe="")
        if self.style == "json":
            yield name, self._text(json.dumps(value))
        elif self.style == "deepObject" and isinstance(value, dict | list):
            yield from self._deep(name, value)
        elif isinstance(value, dict) and self.explode:
            yield from ((self._text(key), self._text(each)) for key, each in value.items())
        elif isinstance(value, list) and self.explode:
            yield from ((name, self._text(each)) for each in value)
        elif isinstance(value, dict | list):
            flat = value if isinstance(value, list) else [e for pair in value.items() for e in pair]
            separator = _SEPARATORS.get(self.style, ",")
            yield name, separator.join(map(self._text, flat))
        else:
            yield name, self._text(value)

    def in_header(self, value: Any) -> str:  # noqa: ANN401  # any JSON value
        """Returns the value for a header, unencoded."""
        match value:
            case _ if self.style == "json":
                return json.dumps(value)
            case dict() if self.explode:
                return ",".join(f"{key}={scalar_text(each)}" for key, each in value.items())
            case dict():
                return ",".join(scalar_text(each) for pair in value.items() for each in pair)
            case list():
                return ",".join(map(scalar_text, value))
        return scalar_text(value)

    def _deep(self, name: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401  # any JSON value
        """Yields `name[key]=value` for nested values; the keys of a list are its indexes."""
        if isinstance(value, dict | list):
            inner = value.items() if isinstance(value, dict) else enumerate(value)
            for key, each in inner:
                yield from self._deep(f"{name}[{quote(str(key), safe='')}]", each)
        else:
            yield name, self._text(value)

    def _text(self, value: object) -> str:
        text = scalar_text(value)
        try:
            return quote(text, safe=_RESERVED if self.reserved and self.place == "query" else "")
        except UnicodeEncodeError:
            raise InvalidArgumentsError(
                f"{self.name}: {text[:50]!r} contains an unpaired surrogate.",
                next_actions=["Remove it."],
            ) from None


def written_pairs(found: Iterator[tuple[str, str]]) -> str:
    """Joins encoded pairs to a query, or the body of a form."""
    return "&".join(f"{name}={value}" for name, value in found)


def scalar_text(value: object) -> str:
    """Formats a single value for a URL, a header or a form."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return "" if value is None else json.dumps(value)


def _flag(given: Mapping[str, Any], name: str, *, default: bool) -> bool:
    value = given.get(name)
    return value if isinstance(value, bool) else default

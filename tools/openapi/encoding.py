"""Encodes parameters and request bodies (OpenAPI 3.1, "Style Values")."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from tools.core.errors import InvalidArgumentsError
from tools.core.unicode_safety import encodable
from tools.openapi.description import Description, UnusableError, items, pairs, text_of
from tools.sandbox.files.sandbox import Sandbox

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
        parts = _parts(value, self._text, explode=self.explode)
        if self.style == "matrix" and not (self.explode and isinstance(value, dict)):
            name = quote(self.name, safe="")
            parts = [f"{name}={part}" for part in (parts if self.explode else [",".join(parts)])]
        text = (prefix if self.explode and prefix else ",").join(parts)
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
        else:
            separator = _SEPARATORS.get(self.style, ",")
            yield name, separator.join(_parts(value, self._text, explode=False))

    def in_header(self, value: Any) -> str:  # noqa: ANN401  # any JSON value
        """Returns the value for a header, unencoded."""
        if self.style == "json":
            return json.dumps(value)
        return ",".join(_parts(value, scalar_text, explode=self.explode))

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


def _parts(value: object, write: Callable[[object], str], *, explode: bool) -> list[str]:
    """Writes the parts of a value; exploded, keys and values are joined by =."""
    if isinstance(value, dict) and explode:
        return [f"{write(key)}={write(each)}" for key, each in value.items()]
    if isinstance(value, dict):
        return [write(each) for pair in value.items() for each in pair]
    return [write(each) for each in (value if isinstance(value, list) else [value])]


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


MOST_FILE_BYTES = 50_000_000  # maximum bytes of one file that is sent
_PREFERRED = ("json", "form", "multipart", "text", "file")
"""Body forms, the easiest for a model first."""

_MOST_TOGETHER = 100  # maximum number of schemas combined into one object by allOf
_FORM_TYPE = "application/x-www-form-urlencoded"
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Shape:
    """The properties of an object schema."""

    properties: Mapping[str, Any] = field(default_factory=dict)
    required: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Body:
    """The body of an operation."""

    media_type: str
    form: str  # its encoding: json, form, multipart, text or file
    schema: object
    required: bool
    description: str = ""
    encoding: Mapping[str, Any] = field(default_factory=dict)  # of the properties of a form
    files: Mapping[str, bool] = field(default_factory=dict)  # file properties, and if lists

    @classmethod
    def of(cls, given: Mapping[str, Any], description: Description) -> Body | None:
        """Reads a body from a description, in the form that is easiest for a model."""
        content = pairs(given.get("content"))
        if not content:
            return None
        media_type = min(content, key=lambda each: _PREFERRED.index(_form(each)))
        media = description.follow(content[media_type])
        form = _form(media_type)
        shape = object_shape(media.get("schema"), description) if form == "multipart" else None
        return cls(
            media_type="application/json" if "*" in media_type else media_type,
            form=form,
            schema=media.get("schema"),
            required=given.get("required") is True,
            description=text_of(given.get("description")),
            encoding=pairs(media.get("encoding")),
            files={} if shape is None else _files(shape, description),
        )

    def encoded(self, value: Any, sandbox: Sandbox) -> tuple[str, bytes]:  # noqa: ANN401  # any JSON value
        """Returns the Content-Type and the bytes of a body; reads the files that it names."""
        match self.form:
            case "json":
                return self.media_type, json.dumps(value).encode()
            case "form":
                found = (
                    pair
                    for name, each in value.items()
                    for pair in Parameter.of_form(name, pairs(self.encoding.get(name))).in_query(
                        each
                    )
                )
                return self.media_type, written_pairs(found).encode()
            case "multipart":
                return self._multipart(value, sandbox)
            case "file":
                return self.media_type, _read(sandbox, value)
        return f"{self.media_type}; charset=utf-8", scalar_text(value).encode(errors="replace")

    def _multipart(self, value: Mapping[str, Any], sandbox: Sandbox) -> tuple[str, bytes]:
        """Encodes parts (RFC 7578): files, texts, and objects as JSON."""
        boundary = secrets.token_hex(16)
        parts = bytearray()
        for name, given in value.items():
            for each in given if isinstance(given, list) else [given]:
                header, content = self._part(name, each, sandbox)
                parts += f"--{boundary}\r\n{header}\r\n\r\n".encode() + content + b"\r\n"
        return f"multipart/form-data; boundary={boundary}", bytes(
            parts + f"--{boundary}--\r\n".encode()
        )

    def _part(self, name: str, value: Any, sandbox: Sandbox) -> tuple[str, bytes]:  # noqa: ANN401  # any JSON value
        named = f'Content-Disposition: form-data; name="{_quoted(name)}"'
        kind = text_of(pairs(self.encoding.get(name)).get("contentType")).partition(",")[0].strip()
        if name in self.files:
            file = _quoted(PurePosixPath(str(value)).name)
            kind = kind if _MEDIA_TYPE.fullmatch(kind) else "application/octet-stream"
            return f'{named}; filename="{file}"\r\nContent-Type: {kind}', _read(sandbox, value)
        if isinstance(value, dict | list):
            return f"{named}\r\nContent-Type: application/json", json.dumps(value).encode()
        return named, scalar_text(value).encode(errors="replace")


def object_shape(schema: object, description: Description) -> Shape | None:
    """Returns the properties of a closed object schema; None for any other schema."""
    properties: dict[str, Any] = {}
    required: set[str] = set()
    seen: list[Mapping[str, Any]] = []
    waiting = [schema]
    while waiting:
        found = description.follow(waiting.pop())
        if any(found is each for each in seen):  # nested allOf can multiply a few schemas
            continue
        if not _is_closed(found) or len(seen) == _MOST_TOGETHER:
            return None
        seen.append(found)
        properties = {**pairs(found.get("properties")), **properties}
        required |= set(filter(None, map(text_of, items(found.get("required")))))
        waiting += reversed(items(found.get("allOf")))
    if not properties or required - properties.keys():
        return None
    return Shape(properties, frozenset(required))


def is_file(schema: object, description: Description) -> bool:
    """Returns whether a property of a form is a file: bytes without a text encoding."""
    found = description.follow(schema)
    if found.get("type", "string") != "string" or "contentEncoding" in found:
        return False
    return found.get("format") == "binary" or (
        "contentMediaType" in found and found["contentMediaType"] != "application/json"
    )


def _is_closed(schema: Mapping[str, Any]) -> bool:
    """Returns whether it is an object schema that only allows its named properties."""
    kinds = schema.get("type", "object")
    choices = [each for key in ("anyOf", "oneOf") for each in items(schema.get(key))]
    return (
        "object" in (kinds if isinstance(kinds, list) else [kinds])
        and schema.get("additionalProperties", False) is False
        and "patternProperties" not in schema
        and not any(set(pairs(each)) - {"required"} for each in choices)
    )


def _files(shape: Shape, description: Description) -> dict[str, bool]:
    found: dict[str, bool] = {}
    for name, schema in shape.properties.items():
        inner = description.follow(schema).get("items")
        if is_file(schema, description):
            found[name] = False
        elif inner is not None and is_file(inner, description):
            found[name] = True
    return found


def _form(media_type: str) -> str:
    kind = media_type.partition(";")[0].strip().lower()
    if kind in {"*/*", "application/json", "application/*"} or kind.endswith("+json"):
        return "json"
    if kind == _FORM_TYPE:
        return "form"
    if kind.startswith("multipart/form-data"):
        return "multipart"
    is_text = kind.startswith("text/") or kind.endswith(("+xml", "/xml", "yaml", "graphql"))
    return "text" if is_text else "file"


def _read(sandbox: Sandbox, path: object) -> bytes:
    content = sandbox.read(str(path), max_bytes=MOST_FILE_BYTES)
    if content.truncated:
        raise InvalidArgumentsError(
            f"{path!r} has more than {MOST_FILE_BYTES:,} bytes.",
            next_actions=["Give a smaller file."],
        )
    return content.data


def _quoted(name: str) -> str:
    escapes = {'"': "%22", "\r": "%0D", "\n": "%0A"}
    return encodable("".join(escapes.get(each, each) for each in name))

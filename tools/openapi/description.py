"""Reads OpenAPI 3.0 and 3.1 descriptions from JSON or YAML, and selects their operations."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, ValuesView
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote, urljoin

from storage.reading.yamltext import read_yaml
from tools.conversion.naming import exposed_name
from tools.core.errors import InvalidArgumentsError

MOST_VALUES = 5_000_000
"""Maximum values of a description, counting those reached through YAML aliases each time."""

LONGEST_CHAIN = 32  # maximum length of a chain of references
NO_HOST = "names no host; the setting url does"
"""The problem of a description that does not give its API's host."""

_VARIABLE = re.compile(r"\{([^{}]+)\}")


class UnusableError(ValueError):
    """A part of a description that cannot become a tool; the message says why."""


@dataclass(frozen=True, slots=True)
class Description:
    """The description of an API."""

    document: Mapping[str, Any]
    is_3_0: bool

    @classmethod
    def parse(cls, data: bytes) -> Description:
        """Parses a description."""
        document = _document(data)
        version = str(document.get("openapi", ""))
        if re.match(r"3\.[01](\.|$)", version) is None:
            raise _wrong_version(document, version)
        return cls(document, version.startswith("3.0"))

    @property
    def title(self) -> str:
        """The API's title."""
        return text_of(pairs(self.document.get("info")).get("title"))

    def follow(self, value: object) -> Mapping[str, Any]:
        """Returns the object itself, or the one that it refers to."""
        for _ in range(LONGEST_CHAIN):
            found = pairs(value)
            if not isinstance(found.get("$ref"), str):
                return found
            value = self.at(found["$ref"])
        raise UnusableError(f"{pairs(value).get('$ref')!r} refers to itself")

    def at(self, reference: str) -> object:
        """Returns the value that a reference points to."""
        if not reference.startswith("#/"):
            raise UnusableError(f"{reference!r} is in another document")
        value: object = self.document
        for part in reference.removeprefix("#/").split("/"):
            key = unquote(part).replace("~1", "/").replace("~0", "~")
            if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
                value = value[int(key)]
            elif isinstance(value, Mapping) and key in value:
                value = value[key]
            else:
                raise UnusableError(f"{reference!r} leads nowhere")
        return value

    def base_url(self, address: str, *owners: Mapping[str, Any]) -> str:
        """Returns the URL that requests are sent to.

        `address` is the description's own URL, to which a server's may be relative. `owners` may
        name another server than the whole description, nearest first.
        """
        for owner in (*owners, self.document):
            if servers := items(owner.get("servers")):
                return _server_url(pairs(servers[0]), address)
        return _server_url({"url": "/"}, address)


def pairs(value: object) -> Mapping[str, Any]:
    """Returns the value if it is an object, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> list[Any]:
    """Returns the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_of(value: object) -> str:
    """Returns the value if it is a text, else ""."""
    return value if isinstance(value, str) else ""


def _server_url(server: Mapping[str, Any], address: str) -> str:
    variables = pairs(server.get("variables"))

    def value(found: re.Match[str]) -> str:
        variable = pairs(variables.get(found[1]))
        return str(variable.get("default", found[0]))

    url = urljoin(address, _VARIABLE.sub(value, text_of(server.get("url")) or "/"))
    if not url.lower().startswith(("http://", "https://")) or "{" in url:
        raise UnusableError(f"its server {url!r} {NO_HOST}")
    return url.rstrip("/")


def _document(data: bytes) -> Mapping[str, Any]:
    try:
        text = data.decode("utf-8-sig")
        try:
            found = json.loads(text)
        except ValueError:
            found = read_yaml(text)
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InvalidArgumentsError(
            f"The description is neither JSON nor YAML: {' '.join(str(error).split())[:200]}.",
            next_actions=["Name a file or an address with an OpenAPI 3 description."],
        ) from error
    if not _is_bounded(found):
        raise InvalidArgumentsError(
            f"The description has more than {MOST_VALUES:,} values.",
            next_actions=["Name a smaller one, such as one with the operations that are wanted."],
        )
    return pairs(found)


def _is_bounded(document: object) -> bool:
    """Returns whether it has at most MOST_VALUES values; YAML aliases can multiply a few."""
    waiting, left = [document], MOST_VALUES
    while waiting:
        value = waiting.pop()
        inner = value.values() if isinstance(value, Mapping) else value
        if isinstance(inner, list | ValuesView):
            left -= len(inner)
            if left < 0:
                return False
            waiting.extend(inner)
    return True


def _wrong_version(document: Mapping[str, Any], version: str) -> InvalidArgumentsError:
    if "swagger" in document:
        return InvalidArgumentsError(
            f"The description is of Swagger {document['swagger']}, not of OpenAPI 3.",
            next_actions=["Convert it: `npx swagger2openapi FILE --outfile openapi.json`."],
        )
    found_version = f"is of OpenAPI {version}" if version else "has no OpenAPI version"
    return InvalidArgumentsError(
        f"The description {found_version}; supported are 3.0 and 3.1.",
        next_actions=["Name a file or an address with an OpenAPI 3 description."],
    )


METHODS = ("get", "head", "options", "post", "put", "patch", "delete")
"""The methods that the web client supports."""

PLACE = re.compile(r"\{([^{}]+)\}")  # matches a parameter in a path
_SEPARATORS = re.compile(r"[^A-Za-z0-9_-]+")
_ROUTE = re.compile(r"(?:([A-Z]+(?:,[A-Z]+)*)\s+)?(/.*)")
_METHODS_ALONE = re.compile(r"[A-Z]+(?:,[A-Z]+)*")


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation."""

    method: str  # the method in upper case
    path: str
    content: Mapping[str, Any]
    item: Mapping[str, Any]

    @property
    def own_id(self) -> str:
        """Its operationId, or method and path."""
        return text_of(self.content.get("operationId")) or f"{self.method.lower()}{self.path}"

    @property
    def tags(self) -> tuple[str, ...]:
        """Its tags in the description."""
        return tuple(filter(None, map(text_of, items(self.content.get("tags")))))

    @property
    def reads(self) -> bool:
        """Returns whether its method is safe (RFC 9110, 9.2.1)."""
        return self.method in {"GET", "HEAD", "OPTIONS"}

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Selection:
    """A selection of operations.

    A pattern is an operationId, `tag:TAG`, a path, methods, or methods and a path, such as
    `GET,HEAD /pets/*`; * and ? match any characters.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()  # patterns of the unwanted ones, which override `include`

    def admits(self, operation: Operation) -> bool:
        """Returns whether an operation is selected."""
        if any(_fits(each, operation) for each in self.exclude):
            return False
        return not self.include or any(_fits(each, operation) for each in self.include)

    def idle(self, operations: Sequence[Operation]) -> Iterator[str]:
        """Yields the patterns that match no operation."""
        for pattern in (*self.include, *self.exclude):
            if not any(_fits(pattern, each) for each in operations):
                yield pattern


def _fits(pattern: str, operation: Operation) -> bool:
    kind, _, tag = pattern.partition(":")
    if kind == "tag":
        return any(fnmatchcase(each, tag) for each in operation.tags)
    if _METHODS_ALONE.fullmatch(pattern) and pattern != operation.own_id:
        return operation.method in pattern.split(",")
    route = _ROUTE.fullmatch(pattern)
    if route is None:
        return fnmatchcase(operation.own_id, pattern)
    methods = route[1].split(",") if route[1] else [operation.method]
    # Braces mean nothing in patterns, and brackets in a path mean themselves.
    return operation.method in methods and fnmatchcase(operation.path, route[2].replace("[", "[[]"))


def operations_of(description: Description) -> list[Operation]:
    """Returns all operations, in the order of the description."""
    return [
        Operation(method.upper(), path, pairs(item[method]), item)
        for path, given in pairs(description.document.get("paths")).items()
        if path.startswith("/")
        for item in (description.follow(given),)
        for method in METHODS
        if isinstance(item.get(method), Mapping)
    ]


def names_of(api: str, operations: Sequence[Operation]) -> dict[str, Operation]:
    """Returns the operations by the names of their tools: `api__operation`.

    Separators in an operationId (`repos/get`) become _. If two names would then be equal,
    `exposed_name` marks both with a hash.

    `operations` are all of the description, so that names do not depend on the selection.
    """
    own = [_SEPARATORS.sub("_", each.own_id).strip("_") for each in operations]
    often = Counter(own)
    names: dict[str, Operation] = {}
    for simple, operation in zip(own, operations, strict=True):
        name = simple if often[simple] == 1 else f"{operation.own_id} {operation}"
        names[exposed_name(api, name)] = operation
    return names

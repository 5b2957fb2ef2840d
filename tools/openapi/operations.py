"""Lists the operations of a description and selects the wanted ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from tools.conversion.naming import exposed_name
from tools.openapi.description import Description, items, pairs, text_of

METHODS = ("get", "head", "options", "post", "put", "patch", "delete")
"""The methods that the web client supports."""

PLACE = re.compile(r"\{([^{}]+)\}")
"""Matches a parameter in a path."""

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

"""The operations of a description, and which of them are wanted."""

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
"""Those that the web client knows."""

PLACE = re.compile(r"\{([^{}]+)\}")
"""Where a parameter stands in a path."""

_SEPARATORS = re.compile(r"[^A-Za-z0-9_-]+")
_ROUTE = re.compile(r"(?:([A-Z]+(?:,[A-Z]+)*)\s+)?(/.*)")
_METHODS_ALONE = re.compile(r"[A-Z]+(?:,[A-Z]+)*")


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation.

    Attributes:
        method: In upper case.
        path: With its parameters in braces.
        content: What the description says of it.
        item: What it says of the path.
    """

    method: str
    path: str
    content: Mapping[str, Any]
    item: Mapping[str, Any]

    @property
    def own_id(self) -> str:
        """What the description calls it; method and path where it does not."""
        return text_of(self.content.get("operationId")) or f"{self.method.lower()}{self.path}"

    @property
    def tags(self) -> tuple[str, ...]:
        """The groups that the description puts it into."""
        return tuple(filter(None, map(text_of, items(self.content.get("tags")))))

    @property
    def reads(self) -> bool:
        """Whether its method changes nothing (RFC 9110, 9.2.1)."""
        return self.method in {"GET", "HEAD", "OPTIONS"}

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, slots=True)
class Selection:
    """Which operations are wanted.

    A pattern is an operationId, `tag:TAG`, a path, methods, or methods and a path, such as
    `GET,HEAD /pets/*`; in each, * and ? stand for any characters.

    Attributes:
        include: Patterns of those that are; empty for all.
        exclude: Patterns of those that are not, whatever is included.
    """

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()

    def admits(self, operation: Operation) -> bool:
        """Whether one is wanted."""
        if any(_fits(each, operation) for each in self.exclude):
            return False
        return not self.include or any(_fits(each, operation) for each in self.include)

    def idle(self, operations: Sequence[Operation]) -> Iterator[str]:
        """The patterns that mean no operation."""
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
    # Braces are no pattern's, and brackets in a path mean themselves.
    return operation.method in methods and fnmatchcase(operation.path, route[2].replace("[", "[[]"))


def operations_of(description: Description) -> list[Operation]:
    """All operations, in the order of the description.

    Raises:
        UnusableError: If a path refers to what is not there.
    """
    return [
        Operation(method.upper(), path, pairs(item[method]), item)
        for path, given in pairs(description.document.get("paths")).items()
        if path.startswith("/")
        for item in (description.follow(given),)
        for method in METHODS
        if isinstance(item.get(method), Mapping)
    ]


def names_of(api: str, operations: Sequence[Operation]) -> dict[str, Operation]:
    """What their tools are called: `api__operation`.

    Separators in an operationId (`repos/get`) become _; where two would be called the same then,
    both keep what tells them apart, as `exposed_name` marks it.

    Args:
        api: Name of the API in the settings.
        operations: All of the description, so that a name does not depend on which are wanted.
    """
    own = [_SEPARATORS.sub("_", each.own_id).strip("_") for each in operations]
    often = Counter(own)
    names: dict[str, Operation] = {}
    for simple, operation in zip(own, operations, strict=True):
        name = simple if often[simple] == 1 else f"{operation.own_id} {operation}"
        names[exposed_name(api, name)] = operation
    return names

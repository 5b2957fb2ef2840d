"""Reads OpenAPI 3.0 and 3.1 descriptions from JSON or YAML."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, ValuesView
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urljoin

from storage.reading.yamltext import read_yaml
from tools.core.errors import InvalidArgumentsError

MOST_VALUES = 5_000_000
"""Maximum values of a description, counting those reached through YAML aliases each time."""

LONGEST_CHAIN = 32
"""Maximum length of a chain of references."""

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
    said = f"is of OpenAPI {version}" if version else "has no OpenAPI version"
    return InvalidArgumentsError(
        f"The description {said}; supported are 3.0 and 3.1.",
        next_actions=["Name a file or an address with an OpenAPI 3 description."],
    )

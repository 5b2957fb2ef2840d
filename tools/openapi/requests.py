"""Builds the request of an operation from arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from tools.openapi.arguments import Arguments
from tools.openapi.operations import PLACE, Operation
from tools.openapi.parameters import Parameter, written_pairs
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.web.url import Url

ACCEPTED = "application/json, */*;q=0.5"

_LITERAL = "/!$&'()*+,;=:@%?"
"""Literal characters of a path template (RFC 3986, 3.3 and 3.4)."""


@dataclass(frozen=True, slots=True)
class RequestMaker:
    """Builds requests of one operation."""

    operation: Operation
    base_url: str
    arguments: Arguments

    def url(self, given: Mapping[str, Any]) -> str:
        """Returns the request's URL."""
        query = written_pairs(
            pair
            for parameter, value in self._of(given, "query")
            for pair in parameter.in_query(value)
        )
        # Some descriptions include a part of the query in their paths: /agents?beta=true.
        path, _, fixed = self._path(given).partition("?")
        query = "&".join(filter(None, (fixed, query)))
        return str(Url.parse(f"{self.base_url}{path}{'?' * bool(query)}{query}"))

    def headers(self, given: Mapping[str, Any]) -> dict[str, str]:
        """Returns the request's headers, except the body's Content-Type."""
        headers = {"Accept": ACCEPTED}
        for parameter, value in self._of(given, "header"):
            headers[parameter.name] = parameter.in_header(value)
        cookies = [
            f"{name}={value}"
            for parameter, given_value in self._of(given, "cookie")
            for name, value in parameter.in_query(given_value)
        ]
        return {**headers, "Cookie": "; ".join(cookies)} if cookies else headers

    def body(self, given: Mapping[str, Any], sandbox: Sandbox) -> tuple[str, bytes] | None:
        """Returns the Content-Type and the bytes of the body, or None."""
        body, value = self.arguments.body, self.arguments.body_of(given)
        return None if body is None or value is None else body.encoded(value, sandbox)

    def _path(self, given: Mapping[str, Any]) -> str:
        values = {each.name: each.in_path(value) for each, value in self._of(given, "path")}
        pieces = PLACE.split(self.operation.path)
        return "".join(
            values[piece] if number % 2 else quote(piece, safe=_LITERAL)
            for number, piece in enumerate(pieces)  # names and literals alternate
        )

    def _of(self, given: Mapping[str, Any], place: str) -> Iterator[tuple[Parameter, Any]]:
        for name, parameter in self.arguments.parameters.items():
            if parameter.place == place and given.get(name) is not None:
                yield parameter, given[name]

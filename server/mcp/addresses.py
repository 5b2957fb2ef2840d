"""Parses and builds `context://` addresses: `context://NOUN/PART…?KEY=VALUE`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, unquote

from tools.core.errors import NotFoundError

SCHEME = "context://"


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed and decoded address.

    Attributes:
        noun: The kind of object.
        parts: The identifying path segments.
        options: The query parameters.
    """

    noun: str
    parts: tuple[str, ...]
    options: Mapping[str, str]

    @classmethod
    def parse(cls, uri: str) -> Address:
        """Parses a URI.

        Raises:
            NotFoundError: If it is not one of our addresses.
        """
        if not uri.startswith(SCHEME):
            raise NotFoundError(f"{uri!r} is not an address here.")
        path, _, query = uri.removeprefix(SCHEME).partition("?")
        noun, *parts = path.split("/")
        try:
            decoded = tuple(unquote(part, errors="strict") for part in parts)
            options = dict(parse_qsl(query, keep_blank_values=True, errors="strict"))
        except ValueError as error:
            raise NotFoundError(f"The address {uri!r} is not UTF-8.") from error
        return cls(noun, decoded, options)


def document_uri(raw_type: str, raw_id: str) -> str:
    """Builds a document's address; reserved characters of both parts are percent-encoded."""
    return f"{SCHEME}documents/{quote(raw_type, safe='')}/{quote(raw_id, safe='')}"


def context_uri(context_id: str) -> str:
    """Builds the address of a context."""
    return f"{SCHEME}contexts/{quote(context_id, safe='')}"


def entity_uri(name: str) -> str:
    """Builds the address of an entity."""
    return f"{SCHEME}entities/{quote(name, safe='')}"


def plan_uri(plan_id: str) -> str:
    """Builds the address of a plan."""
    return f"{SCHEME}plans/{quote(plan_id, safe='')}"

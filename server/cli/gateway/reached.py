"""Describes how another server is reached, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tools.core.audit.redact import redacted_text

if TYPE_CHECKING:
    from server.settings.gateway import ServerSettings

LONGEST = 100
"""Maximum characters of a command or address."""


def reached_by(server: ServerSettings) -> str:
    """Returns the command that starts a server, or its address."""
    if server.command:
        return redacted_text(" ".join((server.command, *server.args)), LONGEST)
    return address_of(server.url)


def address_of(url: str) -> str:
    """Returns a URL without its user, its query, and tokens in its path."""
    address = urlsplit(url)
    host = address.netloc.rpartition("@")[2]
    return redacted_text(f"{address.scheme}://{host}{address.path}", LONGEST)

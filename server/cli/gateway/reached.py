"""How another server is reached, as it is shown: without what may be secret."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tools.core.audit.redact import redacted_text

if TYPE_CHECKING:
    from server.settings.gateway import ServerSettings

LONGEST = 100
"""Characters that are shown of what starts a server, or where it is."""


def reached_by(server: ServerSettings) -> str:
    """What starts a server, or where it is."""
    if server.command:
        return redacted_text(" ".join((server.command, *server.args)), LONGEST)
    return address_of(server.url)


def address_of(url: str) -> str:
    """A url without its user, its query, and what looks like a token in its path."""
    address = urlsplit(url)
    host = address.netloc.rpartition("@")[2]
    return redacted_text(f"{address.scheme}://{host}{address.path}", LONGEST)

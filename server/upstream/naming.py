"""What the tool of another server is called here."""

from __future__ import annotations

import re
from hashlib import sha256

__all__ = ["LONGEST", "SEPARATOR", "exposed_name"]

SEPARATOR = "__"
LONGEST = 60
"""Characters that every client accepts of a name, the server's included."""

_UNSAFE = re.compile(r"[^a-z0-9_-]+")


def exposed_name(server: str, own: str) -> str:
    """`server__name` of characters that every client accepts, the same on every start.

    Args:
        server: Name of the server in the settings.
        own: What the server calls its tool.
    """
    safe = _UNSAFE.sub("_", own.lower()).strip("_")
    name = f"{server}{SEPARATOR}{safe}"
    if safe == own and len(name) <= LONGEST:
        return name
    digest = sha256(own.encode(errors="surrogatepass")).hexdigest()[:6]
    return f"{name[: LONGEST - len(digest) - 1]}_{digest}"

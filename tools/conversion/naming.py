"""What the tool of another server, or of an API, is called here."""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256

SEPARATOR = "__"
"""Stands once at least in each name; what is before the first one is the server's name."""

LONGEST = 49
"""Characters of a name. Cursor leaves out a tool that has 60 together with the name under which it
knows us; Claude Code puts `mcp__toolcrib__` before it, and model APIs refuse more than 64."""

_NAMELESS = "tool"
"""Stands for a name of which no character is safe."""

_MARK = 6
"""Hexadecimal digits that tell names apart which would be the same."""

_SAFE = re.compile(r"[A-Za-z0-9_-]+")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_MARKED = re.compile(rf"_[0-9a-f]{{{_MARK}}}\Z")


def exposed_name(server: str, own: str) -> str:
    """`server__name` of characters that every client accepts.

    It depends on nothing but these two names, so it is the same on every start, whatever other
    tools there are. A name that is safe stays as it is, its case too: models read `createIssue`
    better than `createissue`, and search splits it there. Any other one gets a mark, made from the
    whole name; so does one that ends as if it had a mark. Two tools of a server have different
    names therefore, unless the marks of two similar ones meet by chance (1 in 16 million).

    Args:
        server: Name of the server or API in the settings, 30 characters at most.
        own: What that calls its tool.
    """
    prefix = server + SEPARATOR
    room = LONGEST - len(prefix)
    if len(own) <= room and _SAFE.fullmatch(own) and not _MARKED.search(own):
        return prefix + own
    mark = sha256(own.encode(errors="surrogatepass")).hexdigest()[:_MARK]
    stem = _stem(own[: 10 * LONGEST])[: room - len(mark) - 1].rstrip("_-")
    return f"{prefix}{stem or _NAMELESS}_{mark}"


def _stem(own: str) -> str:
    """What is left of a name without accents and unsafe characters."""
    plain = unicodedata.normalize("NFKD", own).encode("ascii", "ignore").decode()
    return _UNSAFE.sub("_", plain).strip("_-")

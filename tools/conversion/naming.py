"""Names the tools of other servers and APIs."""

from __future__ import annotations

import re
import unicodedata
from hashlib import sha256

SEPARATOR = "__"
"""Separates the server's name from the tool's; its first occurrence counts."""

LONGEST = 49
"""Maximum length of a name. Cursor drops a tool whose name, with the name it knows us by, has 60
characters. Claude Code adds `mcp__toolcrib__`, and model APIs reject more than 64."""

_NAMELESS = "tool"
"""Replaces a name that has no safe character."""

_MARK = 6
"""Number of hexadecimal digits that distinguish names which would otherwise be equal."""

_SAFE = re.compile(r"[A-Za-z0-9_-]+")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")
_MARKED = re.compile(rf"_[0-9a-f]{{{_MARK}}}\Z")


def exposed_name(server: str, own: str) -> str:
    """Returns `server__name` in characters that every client accepts.

    It depends only on these two names, so it is the same on every start, whatever other tools
    exist. A safe name stays unchanged, including its case: models read `createIssue` better than
    `createissue`, and search splits it there. Any other name gets a mark, a hash of the whole name;
    so does a name that ends as if it had one. Names of one server can therefore collide only by
    chance (1 in 16 million). The name of a server or API has 30 characters at most.
    """
    prefix = server + SEPARATOR
    room = LONGEST - len(prefix)
    if len(own) <= room and _SAFE.fullmatch(own) and not _MARKED.search(own):
        return prefix + own
    mark = sha256(own.encode(errors="surrogatepass")).hexdigest()[:_MARK]
    plain = unicodedata.normalize("NFKD", own[: 10 * LONGEST]).encode("ascii", "ignore").decode()
    stem = _UNSAFE.sub("_", plain).strip("_-")[: room - len(mark) - 1].rstrip("_-")
    return f"{prefix}{stem or _NAMELESS}_{mark}"

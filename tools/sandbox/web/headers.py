"""Headers of requests: those a caller may set, and those another origin may see."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tools.core.errors import InvalidArgumentsError

RequestHeaders = tuple[tuple[str, str], ...]

MAX_HEADERS = 64
MAX_HEADER_BYTES = 32_768

OURS = frozenset(
    {
        "accept-encoding",  # only what can be decompressed within bounds
        *("connection", "content-length", "expect", "host", "http2-settings", "keep-alive", "te"),
        *("trailer", "transfer-encoding", "upgrade", "via"),
    }
)
"""Headers that frame or route a message, which callers may not set (RFC 9110, 7)."""

_HARMLESS = frozenset({"accept", "accept-language", "content-language", "content-type"})
"""Headers that fetch lets any page send anywhere; others may be secrets."""

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_VALUE = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")  # RFC 9110, 5.5


def checked_headers(headers: Mapping[str, str] | None) -> RequestHeaders:
    """Checks a caller's headers."""
    given = tuple((name, value.strip(" \t")) for name, value in (headers or {}).items())
    size = sum(len(name) + len(value) + 4 for name, value in given)
    if len(given) > MAX_HEADERS or size > MAX_HEADER_BYTES:
        raise InvalidArgumentsError(
            f"There are {len(given)} headers of {size} bytes.",
            next_actions=[f"Give at most {MAX_HEADERS}, of {MAX_HEADER_BYTES} bytes together."],
        )
    for name, value in given:
        _check(name, value)
    names = [name.lower() for name, _ in given]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise InvalidArgumentsError(
            f"The header {twice!r} is given twice.", next_actions=["Give it once."]
        )
    return given


def for_another_origin(headers: RequestHeaders) -> RequestHeaders:
    """Returns the headers that another origin may see: none that may be credentials."""
    return tuple(each for each in headers if each[0].lower() in _HARMLESS)


def without_body(headers: RequestHeaders) -> RequestHeaders:
    """Returns the headers for repeating a request without its body (RFC 9110, 15.4)."""
    return tuple(each for each in headers if not each[0].lower().startswith("content-"))


def _check(name: str, value: str) -> None:
    lowered = name.lower()
    if not _TOKEN.fullmatch(name):
        raise InvalidArgumentsError(
            f"The header name {name[:100]!r} is not valid.",
            next_actions=["Use letters, digits and hyphens, without a colon or a line end."],
        )
    if lowered in OURS or lowered.startswith("proxy-"):
        raise InvalidArgumentsError(
            f"The header {name!r} is set for you.", next_actions=[f"Leave {name!r} out."]
        )
    if not _VALUE.fullmatch(value):
        raise InvalidArgumentsError(
            f"The value of the header {name!r} holds a line end, a control or a character beyond "
            "Latin-1.",
            next_actions=["Give one line of plain text; percent-encode anything else."],
        )

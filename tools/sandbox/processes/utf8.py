"""Bytes of UTF-8 that were cut somewhere (RFC 3629)."""

from __future__ import annotations

import re

__all__ = ["LONGEST_CHARACTER", "without_cut_end", "without_cut_start"]

LONGEST_CHARACTER = 4
"""Bytes of one character at most."""

_CUT_AT_END = re.compile(rb"(?:[\xc0-\xff]|[\xe0-\xff][\x80-\xbf]|[\xf0-\xff][\x80-\xbf]{2})\Z")
_CUT_AT_START = re.compile(rb"\A[\x80-\xbf]{1,3}")


def without_cut_end(data: bytes) -> bytes:
    """The data without the beginning of a character that its end lacks."""
    return _CUT_AT_END.sub(b"", data)


def without_cut_start(data: bytes) -> bytes:
    """The data without the end of a character that its beginning lacks."""
    return _CUT_AT_START.sub(b"", data)

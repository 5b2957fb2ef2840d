"""Answers as text, in whatever encoding they are (https://encoding.spec.whatwg.org)."""

from __future__ import annotations

import codecs
import re

from storage.errors import UnreadableDocumentError
from storage.reading.decode import byte_order_mark, decode

__all__ = ["charset_of", "decoded", "media_type_of"]

_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:+-]{1,40})", re.IGNORECASE)

# What pages call by these names is, in fact, written in the larger sets.
_MEANT = {
    "ascii": "cp1252",
    "big5": "cp950",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
}
_OF_THE_WEB = frozenset(
    [
        *(f"cp125{number}" for number in range(9)),
        *(f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
        *("cp866", "cp874", "cp932", "cp949", "cp950", "euc_jp", "gb18030", "iso2022_jp"),
        *("koi8-r", "koi8-u", "mac-roman", "utf-8", "utf-16", "utf-16-be", "utf-16-le"),
    ]
)
"""Codecs that a server may name; others, such as punycode, take time without end."""


def media_type_of(content_type: str) -> str:
    """The type in a Content-Type, in lower case and without parameters; empty if it has none."""
    return content_type.partition(";")[0].partition(",")[0].strip().lower()


def charset_of(content_type: str) -> str | None:
    """The codec that a Content-Type names; None if it names none that the web knows."""
    named = _CHARSET.search(content_type)
    if named is None:
        return None
    try:
        name = codecs.lookup(named[1]).name
    except LookupError:
        return None
    name = _MEANT.get(name, name)
    return name if name in _OF_THE_WEB else None


def decoded(data: bytes, charset: str | None, *, partial: bool) -> tuple[str, str] | None:
    """The text in bytes and the encoding it is in; None if they are binary.

    A byte order mark beats the named charset. Bytes that are no characters become U+FFFD.

    Args:
        data: The bytes.
        charset: The codec that is named, if one is.
        partial: Whether they end before their end.
    """
    named = None if byte_order_mark(data)[1] else charset
    for name in dict.fromkeys((named, None)):
        try:
            found = decode(data, name, partial=partial)
        except UnreadableDocumentError:
            continue
        return found.text, found.encoding
    if b"\0" in data:
        return None
    return data.decode(named or "utf-8", "replace"), named or "utf-8"

"""A web response: unpacked piece by piece, as text in any encoding (encoding.spec.whatwg.org)."""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from storage.errors import UnreadableDocumentError
from storage.reading.decode import byte_order_mark, decode
from tools.core.errors import UpstreamError

UNTYPED = frozenset({"", "application/octet-stream", "binary/octet-stream"})
"""Media types that say nothing about the content."""

_TEXTUAL = re.compile(
    r"text/.+|.+/.*(?:json|xml|yaml|toml|javascript|ecmascript|graphql|x-sh|sql|csv)"
    r"|application/(?:x-www-form-urlencoded|rtf)|image/svg\+xml"
)
_HTML = {"text/html", "application/xhtml+xml"}
_HTML_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype\s+html|html)\b", re.IGNORECASE)
_CHARSET = re.compile(r";\s*charset\s*=\s*[\"']?([\w.:+-]{1,40})", re.IGNORECASE)

# Pages that declare these are actually written in the larger sets.
_ACTUAL = {
    "ascii": "cp1252",
    "big5": "cp950",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
}
_WEB_CODECS = frozenset(
    [
        *(f"cp125{number}" for number in range(9)),
        *(f"iso8859-{number}" for number in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)),
        *("cp866", "cp874", "cp932", "cp949", "cp950", "euc_jp", "gb18030", "iso2022_jp"),
        *("koi8-r", "koi8-u", "mac-roman", "utf-8", "utf-16", "utf-16-be", "utf-16-le"),
    ]
)
"""Codecs that a server may name; others, such as punycode, take unbounded time."""


@dataclass(frozen=True, slots=True)
class WebResponse:
    """A web response."""

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    content: bytes
    truncated: bool
    redirects: tuple[str, ...]  # the URLs that led here, in order
    redirect_to: str | None  # the target of a redirect that was not followed
    elapsed: float  # seconds it took

    def header(self, name: str) -> str:
        """Returns the values of a header, joined by commas; may be empty."""
        wanted = name.lower()
        return ", ".join(value for key, value in self.headers if key.lower() == wanted)

    @property
    def media_type(self) -> str:
        """Its media type, in lower case and without parameters; may be empty."""
        return media_type_of(self.header("content-type"))

    @property
    def is_html(self) -> bool:
        """True if it is an HTML page."""
        is_untyped_html = self.media_type in UNTYPED and _HTML_START.match(self.content[:1_000])
        return self.media_type in _HTML or bool(is_untyped_html)

    @property
    def is_text(self) -> bool:
        """True if its declared type is text."""
        return bool(_TEXTUAL.fullmatch(self.media_type))

    def text(self) -> str | None:
        """Returns its body as text; None if it is binary."""
        charset = charset_of(self.header("content-type"))
        return decoded(self.content, charset, partial=self.truncated)


def media_type_of(content_type: str) -> str:
    """Returns the type in a Content-Type, in lower case and without parameters; may be empty."""
    return content_type.partition(";")[0].partition(",")[0].strip().lower()


def charset_of(content_type: str) -> str | None:
    """Returns the codec in a Content-Type; None if missing or unknown to the web."""
    named = _CHARSET.search(content_type)
    if named is None:
        return None
    try:
        name = codecs.lookup(named[1]).name
    except LookupError:
        return None
    name = _ACTUAL.get(name, name)
    return name if name in _WEB_CODECS else None


def decoded(data: bytes, charset: str | None, *, partial: bool) -> str | None:
    """Returns the text in bytes; None if they are binary.

    A byte order mark overrides the declared charset. Invalid bytes become U+FFFD.

    `partial` says that the data may be cut off.
    """
    named = None if byte_order_mark(data)[1] else charset
    for name in dict.fromkeys((named, None)):
        try:
            return decode(data, name, partial=partial).text
        except UnreadableDocumentError:
            continue
    return None if b"\0" in data else data.decode(named or "utf-8", "replace")


ACCEPTED = "gzip, deflate"  # content encodings that servers may use (RFC 9110, 8.4.1)
PIECE_BYTES = 65_536

_GZIP = 16 + zlib.MAX_WBITS
_WINDOWS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}
_GZIP_MAGIC = b"\x1f\x8b"


class Inflater:
    """Decompresses a response.

    The encoding is given in lower case; empty or "identity" for none.
    """

    def __init__(self, encoding: str) -> None:
        self._packed = encoding not in {"", "identity"}
        if self._packed and encoding not in _WINDOWS:
            raise UpstreamError(
                f"The answer is in the encoding {encoding[:100]!r}, which was not asked for.",
                next_actions=["Ask somewhere else."],
            )
        self._window = _WINDOWS.get(encoding, zlib.MAX_WBITS)
        self._unpacker = zlib.decompressobj(self._window)
        self._is_first = True
        self._is_over = False

    @property
    def is_cut(self) -> bool:
        """True if the data ended too early."""
        return self._packed and not (self._is_first or self._is_over or self._unpacker.eof)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Decompresses more data, in pieces of at most 64 KiB."""
        if not self._packed:
            yield data
            return
        self._begin(data)
        while not self._is_over:
            piece = self._unpack(data)
            yield piece
            data = self._rest()
            if not data and len(piece) < PIECE_BYTES:
                return

    def _begin(self, data: bytes) -> None:
        if self._is_first and data:
            self._is_first = False
            # The method and window of zlib's wrapper (RFC 1950, 2.2), judged by one byte.
            is_wrapped = data[0] & 0x0F == 8 and data[0] >> 4 <= 7  # noqa: PLR2004  # of the RFC
            if self._window == zlib.MAX_WBITS and not is_wrapped:
                self._window = -zlib.MAX_WBITS  # many servers omit the wrapper
                self._unpacker = zlib.decompressobj(self._window)

    def _unpack(self, data: bytes) -> bytes:
        try:
            return self._unpacker.decompress(data, PIECE_BYTES)
        except zlib.error as error:
            raise UpstreamError(
                f"The answer cannot be unpacked: {error}.", next_actions=["Try again later."]
            ) from error

    def _rest(self) -> bytes:
        """Returns the remaining data; after the end, only another gzip member (RFC 1952)."""
        if not self._unpacker.eof:
            return self._unpacker.unconsumed_tail
        rest = self._unpacker.unused_data
        if self._window == _GZIP and rest.startswith(_GZIP_MAGIC):
            self._unpacker = zlib.decompressobj(_GZIP)
        else:
            self._is_over = bool(rest)
        return b"" if self._is_over else rest

"""Decompresses responses piece by piece: a few kilobytes may expand to gigabytes."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from tools.core.errors import UpstreamError

ACCEPTED = "gzip, deflate"
"""Content encodings that servers may use (RFC 9110, 8.4.1)."""

PIECE_BYTES = 65_536

_GZIP = 16 + zlib.MAX_WBITS
_WINDOWS = {"gzip": _GZIP, "x-gzip": _GZIP, "deflate": zlib.MAX_WBITS}
_GZIP_MAGIC = b"\x1f\x8b"


class Inflater:
    """Decompresses a response.

    Args:
        encoding: Its Content-Encoding, in lower case; empty or "identity" for none.
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
            if self._window == zlib.MAX_WBITS and not _is_zlib(data):
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


def _is_zlib(data: bytes) -> bool:
    """Returns whether data may begin with zlib's wrapper (RFC 1950, 2.2), judging by one byte."""
    return data[0] & 0x0F == 8 and data[0] >> 4 <= 7  # noqa: PLR2004  # the method and window of the RFC

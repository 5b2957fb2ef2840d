"""Decodes bytes to text, and encodes text back in the same way.

A byte order mark, valid UTF-8 and unmistakable UTF-16 are certain. Other encodings are guessed by
charset-normalizer. A guess counts only if no other plausible encoding reads differently, or as
Windows-1252 if the caller prefers that; it is good enough for reading, never for writing back.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from storage.errors import UnreadableDocumentError

REPLACEMENT = "\ufffd"  # replaces bytes that could not be decoded

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_BINARY_CONTROLS = frozenset(range(0x20)) - frozenset(b"\b\t\n\v\f\r\x1b")
_MARK_CONTROLS = dict.fromkeys(_BINARY_CONTROLS, REPLACEMENT)
_SAMPLE_BYTES = 100_000  # bytes examined for a guess
# Broken bytes allowed in a text, or one per `_BYTES_PER_BROKEN`; binary files have more.
_FEW_BYTES = 4
_BYTES_PER_BROKEN = 500

# How much a guess must resemble a language, from 0 to 1 (charset-normalizer's `coherence`).
_LEAST_COHERENCE = 0.1
_CHAOS_MARGIN = 0.1  # how much more noise rules out another reading (charset-normalizer's `chaos`)
_WESTERN = "cp1252"
_WESTERN_SHARE = 0.3  # of letters that are not ASCII; more is another script
_MIXED_WORD = re.compile(
    "[A-Za-z][\u0370-\u1fff\u2500-\u259f]|[\u0370-\u1fff\u2500-\u259f][A-Za-z]"
)
_SYMBOL_IN_WORD = re.compile(r"[^\W\d_][^\w\s\x00-\x7f\u2010-\u2026\xad\xb7][^\W\d_]")


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded text with its encoding."""

    text: str  # the text, without byte order mark
    encoding: str  # name of the codec, such as "utf-8" or "utf-16-le"
    bom: bytes  # the byte order mark at the beginning, or nothing
    certain: bool  # whether the encoding is known and not guessed
    disputed: bool = False  # whether another plausible encoding reads differently

    def encode(self, text: str) -> bytes:
        """Encodes another text in the same way; raises UnicodeEncodeError if that is impossible."""
        return self.bom + text.encode(self.encoding)


def decode(
    data: bytes, encoding: str | None = None, *, partial: bool = False, western: bool = False
) -> Decoded:
    """Decodes text, in the named encoding if there is one; raises LookupError for an unknown name.

    If plausible encodings disagree, `western` prefers Windows-1252 where that reads as words. If
    `partial`, more bytes follow, so that the last character may be incomplete. Raises
    UnreadableDocumentError if the bytes are binary, or no encoding is certain enough.
    """
    bom, marked = byte_order_mark(data)
    if encoding is not None:
        return _decode_as(data, bom, marked, _codec(encoding), partial=partial)
    if marked:
        return _decode_as(data, bom, marked, marked, partial=partial)
    if b"\0" in data:
        return _decode_wide(data, partial=partial)
    try:
        return Decoded(_strict(data, "utf-8", partial=partial), "utf-8", b"", certain=True)
    except UnicodeDecodeError:
        return _guess(data, partial=partial, western=western)


def decode_marking(data: bytes) -> Decoded:
    """Decodes text with a few broken bytes, which become `REPLACEMENT`."""
    marked = _marked(data)
    if marked is not None:
        broken = marked.text.count(REPLACEMENT)
        whole = sum(character > "\x7f" for character in marked.text) - broken
        if marked.bom or whole > broken:
            return marked
    try:
        return decode(data, western=True)
    except UnreadableDocumentError:
        if marked is None:
            raise
        return marked


def byte_order_mark(data: bytes) -> tuple[bytes, str]:
    """Returns the byte order mark at the beginning and its codec; both empty if there is none."""
    for bom, name in _MARKS:
        if data.startswith(bom):
            return bom, name
    return b"", ""


def _codec(encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name
        b" ".decode(name)  # LookupError for codecs that are not for text, such as "hex".
    except UnicodeDecodeError:
        return name  # One in which a space is not a byte, such as "utf-16".
    except ValueError as error:  # A NUL in the name, or a codec that always refuses.
        raise LookupError(encoding) from error
    return name


def _decode_as(data: bytes, bom: bytes, marked: str, name: str, *, partial: bool) -> Decoded:
    if marked and marked.startswith(name.removesuffix("-sig")):
        name = marked
    else:
        bom = b""
        # Without a mark, "utf-16" and "utf-32" leave the byte order open; little-endian is usual.
        name = f"{name}-le" if name in {"utf-16", "utf-32"} else name.removesuffix("-sig")
    try:
        text = _strict(data[len(bom) :], name, partial=partial)
    except UnicodeError as error:
        message = f"The content is not in the encoding {name!r}: {error}."
        raise UnreadableDocumentError(
            message, suggestions=["Name another encoding, or none to have it detected."]
        ) from None
    return Decoded(text, name, bom, certain=True)


def _strict(data: bytes, name: str, *, partial: bool) -> str:
    return codecs.getincrementaldecoder(name)("strict").decode(data, not partial)


def _decode_wide(data: bytes, *, partial: bool) -> Decoded:
    """Decodes UTF-16 without a mark: half of the bytes of plain text are NUL, all on one side."""
    for name, zeros, others in (
        ("utf-16-le", data[1::2], data[::2]),
        ("utf-16-be", data[::2], data[1::2]),
    ):
        if zeros.count(0) * 2 < len(zeros) or 0 in others:
            continue
        try:
            text = _strict(data, name, partial=partial)
        except UnicodeDecodeError:
            continue
        if not any(ord(character) in _BINARY_CONTROLS for character in text):
            return Decoded(text, name, b"", certain=True)
    raise _binary(data)


def _guess(data: bytes, *, partial: bool, western: bool) -> Decoded:
    if not _BINARY_CONTROLS.isdisjoint(data):
        raise _binary(data)
    readings = {}
    for name in _plausible(data[:_SAMPLE_BYTES]):
        try:
            text = _strict(data, name, partial=partial)
        except UnicodeDecodeError:
            continue
        if not _MIXED_WORD.search(text):
            readings[name] = text
    if len(set(readings.values())) != 1:
        if western and (not readings or _WESTERN in readings):
            with suppress(UnicodeDecodeError):
                text = _strict(data, _WESTERN, partial=partial)
                if _is_western(text):
                    return Decoded(text, _WESTERN, b"", certain=False, disputed=True)
        candidates = ", ".join(sorted(readings)[:5]) or "none"
        message = (
            f"The content is not UTF-8 and its encoding is uncertain (plausible: {candidates})."
        )
        raise UnreadableDocumentError(
            message, suggestions=["Name the encoding, for example 'cp1252', 'gb18030' or 'cp932'."]
        )
    name, text = next(iter(readings.items()))
    return Decoded(text, name, b"", certain=False)


def _is_western(text: str) -> bool:
    """Returns whether the letters are mostly ASCII, and no word has a symbol inside."""
    letters = sum(map(str.isalpha, text))
    others = sum(character > "\x7f" and character.isalpha() for character in text)
    few = max(_WESTERN_SHARE * letters, min(_FEW_BYTES, letters / 2))
    return others <= few and not _SYMBOL_IN_WORD.search(text)


def _marked(data: bytes) -> Decoded | None:
    """Decodes by the byte order mark, or as UTF-8; None if too much is broken."""
    bom, marked = byte_order_mark(data)
    name = marked or "utf-8"
    text = data[len(bom) :].decode(name, "replace").translate(_MARK_CONTROLS)
    broken = len(data) - len(bom) - len(text.replace(REPLACEMENT, "").encode(name))
    few = min(max(_FEW_BYTES, len(data) // _BYTES_PER_BROKEN), len(data) // 20)
    return Decoded(text, name, bom, certain=False) if 0 < broken <= few else None


def _plausible(sample: bytes) -> Iterable[str]:
    """Returns encodings in which the bytes resemble a language, the usual ones first."""
    from charset_normalizer import from_bytes

    matches = list(from_bytes(sample))
    if not matches or matches[0].coherence < _LEAST_COHERENCE:
        return []
    most = matches[0].chaos + _CHAOS_MARGIN
    names = [n for match in matches if match.chaos <= most for n in match.could_be_from_charset]
    return sorted(dict.fromkeys(names), key=lambda name: name != _WESTERN)


def _binary(data: bytes) -> UnreadableDocumentError:
    return UnreadableDocumentError(
        f"The content is binary ({len(data)} bytes read), not text.",
        suggestions=["If it is text, name its encoding."],
    )

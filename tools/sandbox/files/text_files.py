"""Reads text files by lines: encodings, line ends, displayed names, and excerpts that fit."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from storage.errors import UnreadableDocumentError
from storage.reading.decode import Decoded, byte_order_mark, decode
from tools.core.errors import InvalidArgumentsError, NotFoundError
from tools.core.spec import Alias
from tools.sandbox.files.sandbox import FileContent, Sandbox

Newline = Literal["lf", "crlf", "cr", "mixed", "none"]

_BLOCK = 1_000_000  # characters split at once: this blocks all other threads
_STREAMED = 1_048_576
"""Bytes of a large file held at once. In multi-byte encodings, no character crosses the boundary
between blocks."""

_NEAR = 1_000  # distance within which each line end is searched
_END = re.compile(r"\r?\n")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Consecutive lines of a text."""

    content: str
    first: int  # number of the first line, from 1; 0 if there are none
    last: int  # number of the last line in `content`, even if it is incomplete
    cut: bool  # whether requested lines are missing or incomplete


class LongLines:
    """Finds lines in a file too large to hold, counting line ends block by block."""

    def __init__(self, file: int, size: int, end: bytes) -> None:
        self._file, self._size, self._end = file, size, end
        self._before = [0]
        """Number of lines that end before each block, and in total."""
        for at in range(0, size, _STREAMED):
            ended = sum(1 for _ in self._ends(at)) if len(end) > 1 else self._block(at).count(end)
            self._before.append(self._before[-1] + ended)
        last = os.pread(file, len(end), max(0, size - len(end)))
        self.total = self._before[-1] + (size > 0 and last != end)

    def read(self, first: int, last: int, most: int) -> bytes:
        """Returns the bytes of some lines, up to a limit."""
        start, stop = self._start(first), self._start(last + 1)
        return os.pread(self._file, max(0, min(stop - start, most)), start)

    def _start(self, number: int) -> int:
        """Returns the start of a line; the end of the file if the line does not exist."""
        ended = number - 1
        if not ended:
            return 0
        block = bisect_left(self._before, ended) - 1
        if block + 1 >= len(self._before):
            return self._size
        ends = self._ends(block * _STREAMED)
        for _ in range(ended - self._before[block] - 1):
            next(ends, None)
        return next(ends, self._size)

    def _ends(self, at: int) -> Iterator[int]:
        """Yields the positions of line ends in a block."""
        block, width = self._block(at), len(self._end)
        found = block.find(self._end)
        while found >= 0:
            is_whole = found % width == 0  # else it spans two characters
            if is_whole:
                yield at + found + width
            found = block.find(self._end, found + (width if is_whole else 1))

    def _block(self, at: int) -> bytes:
        return os.pread(self._file, min(_STREAMED, self._size - at), at)


def split_lines(text: str) -> list[str]:
    r"""Splits a text into lines with their line ends.

    Lines end at `
    `, as in grep and editors; only in a text without any, they end at `\r`.
    """
    end = _end_sign(text)
    lines, start = list[str](), 0
    while start < len(text):
        stop = text.find(end, start + _BLOCK) + 1 or len(text)
        *whole, last = text[start:stop].split(end)
        lines += [line + end for line in whole]
        if last:
            lines.append(last)
        start = stop
    return lines


def count_lines(text: str) -> int:
    """Counts the lines that `split_lines` returns."""
    end = _end_sign(text)
    return text.count(end) + (bool(text) and not text.endswith(end))


def line_start(text: str, number: int) -> int:
    """Returns the start of a line; the end of the text if the line does not exist."""
    end = _end_sign(text)
    start, missing = 0, number - 1
    for block in (_BLOCK, _NEAR):
        while missing and start < len(text):
            stop = text.find(end, start + block) + 1 or len(text)
            there = text.count(end, start, stop)
            if there >= missing:
                break
            start, missing = stop, missing - there
    for _ in range(missing):
        start = text.find(end, start) + 1 or len(text)
    return start


def newline_style(text: str) -> Newline:
    """Returns the line end style of a text."""
    if "\r" not in text:
        return "lf" if "\n" in text else "none"
    crlf = text.count("\r\n")
    lf = text.count("\n") - crlf
    if crlf and lf:
        return "mixed"
    if crlf or lf:
        return "crlf" if crlf else "lf"
    return "cr" if "\r" in text else "none"


def line_ends(text: str) -> list[str]:
    r"""Returns the line ends of a text, in order."""
    return _END.findall(text) if "\n" in text else ["\r"] * text.count("\r")


def usual_end(text: str, *, near: int | None = None) -> str:
    r"""Returns the line end for a new line.

    With `near`, the line at that position decides, or the previous one if that has no line end.
    Otherwise it is the most frequent line end, and a line feed for a single line.
    """
    if near is None:
        if text.count("\r\n") * 2 > text.count("\n"):
            return "\r\n"
        return "\r" if newline_style(text) == "cr" else "\n"
    end = _end_sign(text)
    found = text.find(end, near)
    if found < 0:
        found = text.rfind(end)
    if found < 0:
        return "\n"
    return "\r\n" if text[max(found - 1, 0) : found + 1] == "\r\n" else end


def line_span(ranges: Sequence[int], total: int, *, exact: bool) -> tuple[int, int]:
    """Resolves a pair of line numbers.

    Numbers count from 1, or from the end if negative. `exact` requires both lines to exist;
    otherwise the range is clipped to the text.
    """
    start, end = (total + 1 + number if number < 0 else number for number in ranges)
    if not exact and start <= total:
        start = max(start, 1) if ranges[0] < 0 else start
        end = min(end, total)
    if 0 in ranges or not 1 <= start <= end <= total:
        raise InvalidArgumentsError(
            f"The lines {list(ranges)} do not exist: there are {total}, counted from 1.",
            next_actions=[f"Give ranges as [first, last] within 1 and {total}, or negative."],
        )
    return start, end


def excerpt(text: str, first: int, last: int, *, limit: int) -> Excerpt:
    """Returns as many whole lines as fit, or the start of a line that alone is too long."""
    start, stop = line_start(text, first), line_start(text, last + 1)
    if stop - start <= limit:
        return Excerpt(text[start:stop], first if text else 0, last, cut=False)
    end = _end_sign(text)
    stop = text.rfind(end, start, start + limit) + 1
    if not stop:
        return Excerpt(text[start : start + limit], first, first, cut=True)
    whole = text.count(end, start, stop)
    return Excerpt(text[start:stop], first, first + whole - 1, cut=True)


def replace_lines(text: str, start: int, end: int, content: str) -> str:
    r"""Replaces some lines and keeps every other character.

    Each new line gets the line end of the line it replaces, and further lines that of the last one.
    If the last line of the text had no line end, it still has none.

    An empty `content` removes the lines.
    """
    first, last = line_start(text, start), line_start(text, end + 1)
    old = text[first:last]
    # The last line may have no line end, and contain characters that end lines in other texts.
    is_one = "\n" in text and "\n" not in old
    usual = usual_end(text)
    plain = content.replace("\r\n", "\n")
    parts = (plain.replace("\r", "\n") if usual == "\r" else plain).split("\n")
    if not parts[-1]:
        parts.pop()
    like = [old] if is_one else split_lines(old[: line_start(old, len(parts) + 1)])
    ends = [_end(line) for line in like]
    new = [part + (ends[min(i, len(ends) - 1)] or usual) for i, part in enumerate(parts)]
    if new and not _end(old):
        new[-1] = parts[-1]
    return "".join((text[:first], "".join(new), text[last:]))


def _end_sign(text: str) -> str:
    """Returns the character that ends each line, as in `split_lines`."""
    return "\n" if "\n" in text else "\r"


def _end(line: str) -> str:
    if line.endswith("\r\n"):
        return "\r\n"
    return line[-1] if line.endswith(("\n", "\r")) else ""


FilePath = Annotated[str, Field(description="Relative to the root, or absolute within it")]
FILE_NAMES = Alias("path", "filename", "absolute_path", "filePath")
"""Names of the path parameter in other tools."""

Encoding = Annotated[str, Field(max_length=64, description="Such as cp1252; default: detected")]
Digest = Annotated[
    str, Field(pattern="^[0-9a-fA-F]{12,64}$", description="Refuse if the file has another digest")
]

_MARK_BYTES = 4


def unicode_name(name: str) -> str:
    """Decodes a file's name to valid Unicode, escaping invalid bytes."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def short_digest(sha256: str) -> str:
    """Shortens a digest to a prefix that suffices to expect it."""
    return sha256[:12]


def visible(name: str) -> str:
    """Escapes control characters, so that a name cannot span lines or drive a terminal."""
    return name if name.isprintable() else name.encode("unicode_escape").decode("ascii")


def read_text(path: str, found: FileContent, encoding: str | None) -> Decoded:
    """Decodes the text of a file."""
    if encoding is None and found.data.isascii() and b"\0" not in found.data:
        return Decoded(found.data.decode("ascii"), "utf-8", b"", certain=True)
    try:
        return decode(found.data, encoding, partial=found.truncated)
    except LookupError:
        raise _no_such_encoding(encoding) from None
    except UnreadableDocumentError as error:
        raise InvalidArgumentsError(
            f"The file {path!r} ({found.size} bytes) cannot be read as text. {error.message}",
            next_actions=error.suggestions,
        ) from error


def editable_text(path: str, data: bytes, encoding: str | None) -> Decoded:
    """Decodes a whole file if it can be written back unchanged."""
    decoded = read_text(path, FileContent(data, len(data), 0.0, truncated=False), encoding)
    if not decoded.certain or decoded.encode(decoded.text) != data:
        raise InvalidArgumentsError(
            f"The file {path!r} is not written back under an encoding that is only a guess or does "
            f"not keep every byte ({decoded.encoding!r}).",
            next_actions=["Give the file's encoding in `encoding`."],
        )
    return decoded


def present_encoding(sandbox: Sandbox, path: str) -> tuple[bytes, str]:
    """Returns the byte order mark and codec that overwriting a file keeps; else plain UTF-8."""
    try:
        start = sandbox.read(path, max_bytes=_MARK_BYTES).data
    except NotFoundError:
        start = b""
    bom, name = byte_order_mark(start)
    return bom, name or "utf-8"


def encode_text(text: str, encoding: str) -> bytes:
    """Encodes a text."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise InvalidArgumentsError(
            f"The content has {text[error.start]!r}, which {encoding!r} cannot represent.",
            next_actions=["Leave the character out, or write the whole file in 'utf-8'."],
        ) from None
    except (LookupError, ValueError):
        raise _no_such_encoding(encoding) from None


def _no_such_encoding(encoding: str | None) -> InvalidArgumentsError:
    return InvalidArgumentsError(
        f"There is no text encoding named {encoding!r}.",
        suggestions=["utf-8", "utf-16", "cp1252", "gb18030", "cp932"],
    )

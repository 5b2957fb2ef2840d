"""Lines of a text, with their ends kept, so that changing some leaves the others as they were."""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from tools.core.errors import InvalidArgumentsError

Newline = Literal["lf", "crlf", "cr", "mixed", "none"]

_BLOCK = 1_000_000
"""Characters that are split at once: no other thread runs meanwhile."""

_STREAMED = 1_048_576
"""Bytes of a long file that are held at once; no character begins in one block and ends in another
of an encoding that has several bytes for the end of a line."""

_NEAR = 1_000
"""Characters within which each line end is looked for."""

_END = re.compile(r"\r?\n")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Consecutive lines of a text.

    Attributes:
        content: The lines with their ends.
        first: Number of the first, from 1; 0 if there is none.
        last: Number of the last that `content` has, at least in part.
        cut: Whether lines that were asked for are missing or incomplete.
    """

    content: str
    first: int
    last: int
    cut: bool


class LongLines:
    """Where the lines are of a file that is too long to be held; they are counted block by block.

    Args:
        file: Descriptor of the file.
        size: Bytes of it that are looked at.
        end: What ends a line, in the file's encoding.

    Attributes:
        total: How many lines there are.
    """

    def __init__(self, file: int, size: int, end: bytes) -> None:
        self._file, self._size, self._end = file, size, end
        self._before = [0]
        """Lines that end before each block, and in all."""
        for at in range(0, size, _STREAMED):
            ended = sum(1 for _ in self._ends(at)) if len(end) > 1 else self._block(at).count(end)
            self._before.append(self._before[-1] + ended)
        last = os.pread(file, len(end), max(0, size - len(end)))
        self.total = self._before[-1] + (size > 0 and last != end)

    def read(self, first: int, last: int, most: int) -> bytes:
        """Returns the bytes of some lines, or the first of them."""
        start, stop = self._start(first), self._start(last + 1)
        return os.pread(self._file, max(0, min(stop - start, most)), start)

    def _start(self, number: int) -> int:
        """Returns where a line begins; the end of the file for those that are not there by now."""
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
        """Yields where each line ends that ends in a block."""
        block, width = self._block(at), len(self._end)
        found = block.find(self._end)
        while found >= 0:
            is_whole = found % width == 0  # else it is the end of one character and the next one's
            if is_whole:
                yield at + found + width
            found = block.find(self._end, found + (width if is_whole else 1))

    def _block(self, at: int) -> bytes:
        return os.pread(self._file, min(_STREAMED, self._size - at), at)


def split_lines(text: str) -> list[str]:
    r"""The lines of a text, each with its end.

    A line ends at `\n`, as grep and editors count; only a text without any ends its lines at `\r`.
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
    """How many lines `split_lines` makes of a text."""
    end = _end_sign(text)
    return text.count(end) + (bool(text) and not text.endswith(end))


def line_start(text: str, number: int) -> int:
    """Where a line begins; the end of the text for those after the last.

    Args:
        text: The whole text.
        number: The line, from 1.
    """
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
    """How a text ends its lines."""
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
    r"""The ends of the lines of a text or of a part of it, in order."""
    return _END.findall(text) if "\n" in text else ["\r"] * text.count("\r")


def usual_end(text: str, *, near: int | None = None) -> str:
    r"""How a new line of a text is to end.

    Args:
        text: The whole text.
        near: A place in it: as the line there ends, or the one before where that has no end.

    Returns:
        As most lines end, where no place is given; "\n" in a text of one line.
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
    """First and last line that a pair of numbers means.

    Args:
        ranges: First and last line, from 1, or negative and counted from the end.
        total: Lines that there are.
        exact: Whether both have to exist; else what lies beyond the text is left out.
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
    """As many whole lines as fit, or the beginning of one that alone is too long.

    Args:
        text: The whole text.
        first: First line asked for, from 1.
        last: Last line asked for.
        limit: Characters at most.
    """
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
    r"""A text with some lines replaced and every other character kept.

    A new line ends as the line that it replaces did, further ones as the last of them; the last
    line of the text keeps having or lacking its end.

    Args:
        text: The whole text.
        start: First line that is replaced, from 1.
        end: Last line that is replaced, at most the number of lines.
        content: The new lines, ended by `\n` or `\r\n`; nothing removes the lines.
    """
    first, last = line_start(text, start), line_start(text, end + 1)
    old = text[first:last]
    # The last line of a text may be without an end, and have other signs that end lines elsewhere.
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
    """What ends each line, as `split_lines` says."""
    return "\n" if "\n" in text else "\r"


def _end(line: str) -> str:
    if line.endswith("\r\n"):
        return "\r\n"
    return line[-1] if line.endswith(("\n", "\r")) else ""

r"""The text and lines of a file's bytes, and whether they are worth matching line by line.

A plain text is looked for in the bytes of a file. Any other pattern that can match no line feed is
tried on the whole text, with `^` and `$` at every line (MULTILINE): where it does not match the
text, it matches no line, and trying it costs no more than trying it on each.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple, Self

MAX_FILE_BYTES = 50_000_000
"""Larger files are not searched; the answer names them."""

MAX_SHOWN = 400
"""Characters that are shown of one line."""

_LOOKED_AT = 8192
"""Bytes in which a NUL means that a file is binary, as grep and git have it."""

WIDE_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
"""The byte order marks of UTF-16, and what they stand for."""

_MAY_LEAVE = re.compile(
    r"\\[^dwSbtfv\W_]"  # classes with a line feed, ends of the text, `\B`, characters by number
    r"|\[\^"  # a set by what is not in it
    r"|\(\?(?!:|P[<=]|i[:)])"  # lookarounds, flags, atomic groups
    r"|[*+?}]\+"  # possessive repetitions: they give back nothing of another line
    r"|[\0-\x1f]"
)
_PLAIN = re.compile(r"(\(\?i\))?([\w !\"#%&',/:;<=>@`~-]+)", re.ASCII)
_FOLDED_BEYOND_ASCII = re.compile("[kKsSiI]")
"""Letters that stand for others, as the Kelvin sign, when case is ignored."""


def text_of(data: bytes) -> str | None:
    """The text of a file; None if it is binary.

    UTF-16 is known by its byte order mark; all else is UTF-8, and of that each line that is not
    valid is Latin-1.
    """
    wide = WIDE_MARKS.get(data[:2])
    if wide is None and b"\0" in data[:_LOOKED_AT]:
        return None
    try:
        return data[2:].decode(wide, "replace") if wide else data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "\n".join(map(_line, data.removeprefix(codecs.BOM_UTF8).split(b"\n")))


def lines_of(text: str) -> list[str]:
    r"""The lines of a text without their ends, numbered as read_file numbers them.

    A line ends at `\n` or `\r\n`; only a text without any ends its lines at `\r`.
    """
    end = "\r" if "\r" in text and "\n" not in text else "\n"
    lines = text.split(end)
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def cut(line: str, start: int, end: int) -> str:
    """A line as it is shown: whole, or the part around what was found in it.

    Args:
        line: The line.
        start: Where what was found begins.
        end: Where it ends.
    """
    if len(line) <= MAX_SHOWN:
        return line
    room = max(MAX_SHOWN - (end - start), 0)
    first = max(min(start - room // 2, len(line) - MAX_SHOWN), 0)
    last = min(first + MAX_SHOWN, len(line))
    return ("…" if first else "") + line[first:last] + ("…" if last < len(line) else "")


class PlainText(NamedTuple):
    """A text that is in every line in which a pattern fits.

    Attributes:
        text: In ASCII; in lower case where case is ignored.
        ignores_case: Whether it is.
    """

    text: bytes
    ignores_case: bool

    @classmethod
    def of(cls, pattern: str, *, ignore_case: bool) -> Self | None:
        """Returns the text of a pattern that is one; None for any other pattern."""
        match = _PLAIN.fullmatch(pattern)
        if match is None:
            return None
        text, ignores_case = match[2], ignore_case or match[1] is not None
        if ignores_case:
            text = max(_FOLDED_BEYOND_ASCII.split(text), key=len).lower()
        return cls(text.encode(), ignores_case)

    def is_in(self, data: bytes) -> bool:
        """Returns whether it is in the bytes of a file, in UTF-8 or Latin-1."""
        return self.text in (data.lower() if self.ignores_case else data)


def stays_in_line(pattern: str) -> bool:
    """Returns whether no part of a pattern takes a line feed, or means the ends of the text.

    Args:
        pattern: A valid one of Python's `re`. Where its text does not tell, the answer is no.
    """
    return _MAY_LEAVE.search(pattern) is None


def _line(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")

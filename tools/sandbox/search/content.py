r"""Decodes files to text and lines, and decides which need matching line by line.

Plain text is searched in the bytes of a file. Any other pattern that cannot match a line feed is
tried on the whole text, with `^` and `$` at every line (MULTILINE): if it does not match the text,
it matches no line, and trying it costs no more than trying each line.
"""

from __future__ import annotations

import codecs
import re
from typing import NamedTuple, Self

MAX_FILE_BYTES = 50_000_000
"""Limit on the files searched; larger ones are listed in the answer."""

MAX_SHOWN = 400
"""Limit on the characters of a line."""

_LOOKED_AT = 8192
"""Bytes in which a NUL marks a file as binary, as in grep and git."""

WIDE_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
"""The byte order marks of UTF-16, with the codecs."""

_MAY_LEAVE = re.compile(
    r"\\[^dwSbtfv\W_]"  # classes with a line feed, ends of the text, `\B`, numeric escapes
    r"|\[\^"  # negated sets
    r"|\(\?(?!:|P[<=]|i[:)])"  # lookarounds, flags, atomic groups
    r"|[*+?}]\+"  # possessive repetitions: they do not backtrack out of another line
    r"|[\0-\x1f]"
)
_PLAIN = re.compile(r"(\(\?i\))?([\w !\"#%&',/:;<=>@`~-]+)", re.ASCII)
_FOLDED_BEYOND_ASCII = re.compile("[kKsSiI]")
"""Letters that match non-ASCII characters, such as the Kelvin sign, if case is ignored."""


def text_of(data: bytes) -> str | None:
    """Decodes the text of a file; None if it is binary.

    UTF-16 is detected by its byte order mark. Everything else is UTF-8, except that invalid lines
    are Latin-1.
    """
    wide = WIDE_MARKS.get(data[:2])
    if wide is None and b"\0" in data[:_LOOKED_AT]:
        return None
    try:
        return data[2:].decode(wide, "replace") if wide else data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "\n".join(map(_line, data.removeprefix(codecs.BOM_UTF8).split(b"\n")))


def lines_of(text: str) -> list[str]:
    r"""Splits a text into lines without their ends, numbered as in read_file.

    Lines end at `
    ` or `\r
    `; only in a text without any, they end at `\r`.
    """
    end = "\r" if "\r" in text and "\n" not in text else "\n"
    lines = text.split(end)
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def cut(line: str, start: int, end: int) -> str:
    """Cuts a line to the part around a match."""
    if len(line) <= MAX_SHOWN:
        return line
    room = max(MAX_SHOWN - (end - start), 0)
    first = max(min(start - room // 2, len(line) - MAX_SHOWN), 0)
    last = min(first + MAX_SHOWN, len(line))
    return ("…" if first else "") + line[first:last] + ("…" if last < len(line) else "")


class PlainText(NamedTuple):
    """A text that occurs in every line matched by a pattern."""

    text: bytes  # ASCII text; in lower case if case is ignored
    ignores_case: bool

    @classmethod
    def of(cls, pattern: str, *, ignore_case: bool) -> Self | None:
        """Returns the text of a literal pattern; None for any other pattern."""
        match = _PLAIN.fullmatch(pattern)
        if match is None:
            return None
        text, ignores_case = match[2], ignore_case or match[1] is not None
        if ignores_case:
            text = max(_FOLDED_BEYOND_ASCII.split(text), key=len).lower()
        return cls(text.encode(), ignores_case)

    def is_in(self, data: bytes) -> bool:
        """Returns whether the bytes of a file, in UTF-8 or Latin-1, contain it."""
        return self.text in (data.lower() if self.ignores_case else data)


def stays_in_line(pattern: str) -> bool:
    """Returns whether a pattern can neither match a line feed nor refer to the ends of the text.

    The pattern is valid for Python's `re`. If in doubt, the answer is False.
    """
    return _MAY_LEAVE.search(pattern) is None


def _line(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")

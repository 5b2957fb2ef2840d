"""Lines of a file's bytes, and what is shown of one."""

from __future__ import annotations

import codecs

__all__ = ["MAX_FILE_BYTES", "WIDE_MARKS", "cut", "lines_of", "text_of"]

MAX_FILE_BYTES = 50_000_000
"""Larger files are not searched; the answer names them."""

MAX_SHOWN = 400
"""Characters that are shown of one line."""

_LOOKED_AT = 8192
"""Bytes in which a NUL means that a file is binary, as grep and git have it."""

WIDE_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
"""The byte order marks of UTF-16, and what they stand for."""


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


def _line(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")

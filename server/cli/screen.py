"""The terminal of a person who is asked: what they see whole, and what they type after it."""

from __future__ import annotations

import os
import sys
import termios
from collections.abc import Iterator

__all__ = ["forget_typed", "wrapped"]

USUAL_COLUMNS = 80
CONTINUED = " " * 6
"""Before what goes on: it stands deeper than any line that is one."""


def wrapped(line: str) -> str:
    """A line that has nothing unseen in it, as rows of the terminal; in a pipe as it is.

    A terminal goes on at its first column, where the rest of a long line would pass for another.
    """
    if not sys.stdout.isatty():
        return line
    columns = os.get_terminal_size(sys.stdout.fileno()).columns or USUAL_COLUMNS
    return f"\n{CONTINUED}".join(_rows(line, columns))


def forget_typed() -> None:
    """Forgets what was typed already: it was no answer to what is shown only now."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _rows(line: str, columns: int) -> Iterator[str]:
    row, left = "", columns
    for character in line:
        width = 1 if character.isascii() else 2  # at most, whatever the terminal makes of it
        if left < width:
            yield row
            row, left = "", max(columns - len(CONTINUED), 2)
        row += character
        left -= width
    yield row

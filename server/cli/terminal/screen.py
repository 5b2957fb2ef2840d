"""What commands print, and the terminal of a person that they print it on."""

from __future__ import annotations

import json
import os
import sys
import termios
from collections.abc import Iterator
from typing import TYPE_CHECKING

from server.mcp.visible import visible, visible_lines

if TYPE_CHECKING:
    from rich.console import Console

USUAL_COLUMNS = 80
CONTINUED = " " * 6
"""Before the rest of a long line: deeper than any line of its own."""


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Prints a text; on a terminal, what would steer it or hide something is marked.

    Args:
        text: The text, which may be an agent's or another server's.
        err: Whether it goes to stderr.
        nl: Whether a line end follows.
    """
    stream = sys.stderr if err else sys.stdout
    stream.write((visible_lines(text) if stream.isatty() else text) + "\n" * nl)
    stream.flush()


def say(*parts: str | tuple[str, str]) -> None:
    """Prints one line that has nothing unseen in it; in a pipe it stays one.

    Args:
        parts: Texts, some with a style of rich.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    styled = ((part, "") if isinstance(part, str) else part for part in parts)
    line = Text.assemble(*((visible(text), style) for text, style in styled))
    if console.is_terminal:
        rows = line.wrap(console, max(console.width - len(CONTINUED), 1))
        line = Text(f"\n{CONTINUED}").join(rows)
    console.print(line, soft_wrap=True)


def console() -> Console:
    """Returns where progress and warnings go: stderr, so that the output can be piped."""
    from rich.console import Console

    return Console(stderr=True)


def print_line(where: Console, line: str, style: str = "") -> None:
    """Prints one line, neither wrapped nor read as markup; unseen characters are marked."""
    from rich.text import Text

    where.print(Text(visible(line), style), soft_wrap=True)


def print_json(value: object) -> None:
    """Prints a result for a program."""
    echo(json.dumps(value, indent=2, ensure_ascii=False))


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
    """Rows without a character less: they end behind a blank, where one is in their second half."""
    row, left = "", columns
    for character in line:
        if left < _width(character):
            end = row.rfind(" ", len(row) // 2) + 1 or len(row)
            yield row[:end]
            row = row[end:]
            left = max(columns - len(CONTINUED), 2) - sum(map(_width, row))
        row += character
        left -= _width(character)
    yield row


def _width(character: str) -> int:
    return 1 if character.isascii() else 2  # at most, whatever the terminal makes of it

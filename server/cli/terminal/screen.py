"""Prints the output of commands, and handles the user's terminal."""

from __future__ import annotations

import json
import os
import sys
import termios
from collections.abc import Iterator
from typing import TYPE_CHECKING, NoReturn

from server.mcp.visible import visible, visible_lines

if TYPE_CHECKING:
    from rich.console import Console

USUAL_COLUMNS = 80
ENTRY_CHARACTERS = 300
"""Length of the text of an entry in a list; JSON, and what is named, have it in full."""

CONTINUED = " " * 6
"""Indent of the rest of a long line: deeper than that of any line."""


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Prints a text; on a terminal, marks control and invisible characters."""
    stream = sys.stderr if err else sys.stdout
    stream.write((visible_lines(text) if stream.isatty() else text) + "\n" * nl)
    stream.flush()


def echo_link(title: str, address: str) -> None:
    """Prints an address that a terminal opens on a click, even where it wraps."""
    stream, target = sys.stdout, visible(address)
    line = f"{visible(title)}: {target}"
    if stream.isatty():
        line = f"\x1b]8;;{target}\x1b\\{line}\x1b]8;;\x1b\\"
    stream.write(f"{line}\n")


def fail(problem: str) -> NoReturn:
    """Prints a problem to stderr and exits with 1."""
    echo(problem, err=True)
    sys.exit(1)


def check_person(action: str) -> None:
    """Exits unless stdin is a terminal: an agent's shell has none, and only people may approve."""
    if not sys.stdin.isatty():
        fail(f"{action} requires an interactive terminal.")


def say(*parts: str | tuple[str, str]) -> None:
    """Prints one line with invisible characters marked; in a pipe it is not wrapped."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    styled = ((part, "") if isinstance(part, str) else part for part in parts)
    line = Text.assemble(*((visible(text), style) for text, style in styled))
    if console.is_terminal:
        rows = line.wrap(console, max(console.width - len(CONTINUED), 1))
        line = Text(f"\n{CONTINUED}").join(rows)
    console.print(line, soft_wrap=True)


def say_entry(*title: str | tuple[str, str], text: str) -> None:
    """Prints an entry of a list: its title, and the beginning of a text below it."""
    from tools.answers.tool_cards import clipped_line

    say(*title)
    if shown := clipped_line(visible(text), ENTRY_CHARACTERS):
        say(f"      {shown}")


def console() -> Console:
    """Returns a console on stderr for progress and warnings, so that the output can be piped."""
    from rich.console import Console

    return Console(stderr=True)


def print_line(where: Console, line: str, style: str = "") -> None:
    """Prints one line without wrapping or markup; invisible characters are marked."""
    from rich.text import Text

    where.print(Text(visible(line), style), soft_wrap=True)


def print_json(value: object) -> None:
    """Prints a result as JSON."""
    echo(json.dumps(value, indent=2, ensure_ascii=False))


def wrapped(line: str) -> str:
    """Wraps a line without invisible characters to the terminal; in a pipe, keeps it.

    A terminal would continue in its first column, where the rest could pass for another line.
    """
    if not sys.stdout.isatty():
        return line
    columns = os.get_terminal_size(sys.stdout.fileno()).columns or USUAL_COLUMNS
    return f"\n{CONTINUED}".join(_rows(line, columns))


def forget_typed() -> None:
    """Discards input typed before the question was shown."""
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)


def _rows(line: str, columns: int) -> Iterator[str]:
    """Splits a line into rows, losing no character; breaks at a blank in a row's second half."""
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
    return 1 if character.isascii() else 2  # the maximum; terminals differ

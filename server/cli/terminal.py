"""Text for a person's terminal, whatever stands in it."""

from __future__ import annotations

import unicodedata

from rich.console import Console
from rich.text import Text

__all__ = ["console", "say", "visible"]

_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
"""Control characters to the pictures that Unicode has of them."""


def console() -> Console:
    """Where progress and complaints are shown: stderr, so that a command's output can be piped."""
    return Console(stderr=True)


def visible(text: str) -> str:
    """The text on one line, with a picture or a mark in place of what would steer the terminal.

    Names and documents come from anywhere: their escape sequences and marks of direction are
    shown, not obeyed.
    """
    return "".join(
        "\ufffd" if unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} else character
        for character in text.translate(_PICTURES)
        if unicodedata.bidirectional(character) not in _DIRECTIONS
    )


_DIRECTIONS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def say(where: Console, line: str, style: str = "") -> None:
    """Prints one line as it is: not wrapped, and nothing in it taken for markup."""
    where.print(Text(visible(line), style), soft_wrap=True)

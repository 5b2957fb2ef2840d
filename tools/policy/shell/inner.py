"""Commands that a command runs, and words that a program may find in its arguments."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools.policy.shell.words import Word

QUOTES = re.compile(r"""\\\n|['"\\]|\$(?=['"])""")
"""Quoting that a shell removes from a word."""

ESCAPES = re.compile(r"\\[abfnrtv]")
BETWEEN = re.compile(r"""[\s;|&<>(){}'"`$\\=:,!@%^~#]+""")
"""Separators of words in a text that a program runs."""

EXPANDED = re.compile(r"""`|\$[({\w'"@*]|\w\{[^{}\s,]*,[^{}\s]*\}|\{[^{}\s,]*,[^{}\s]*\}\w""")
"""Expansions that a shell would perform in a text."""

STDIN = re.compile(r"(.*/)?(stdin|stdout|stderr|tty|fd/\d+|pts/\d+)", re.DOTALL)
"""Files through which a program reads its open standard input."""


def names_stdin(text: str) -> bool:
    """Returns whether a word, or the value in an option, names the standard input."""
    values = (text, text.partition("=")[2], text[2:] if text.startswith("-") else "")
    return any(each == "-" or STDIN.fullmatch(posixpath.normpath(each)) for each in values)


def is_expanded(text: str) -> bool:
    """Returns whether a shell would expand a text."""
    return EXPANDED.search(text) is not None


def pieces_of(text: str) -> Iterator[str]:
    """Yields the words that a program may find in a text, however they are joined or quoted."""
    yield text
    for form in dict.fromkeys((text, QUOTES.sub("", text))):
        for piece in BETWEEN.split(ESCAPES.sub(" ", form)):
            yield piece
            yield piece.strip("[]*?")
            if piece.startswith("-"):  # the value of a short option, also in a cluster
                yield from (piece[2:], piece[3:])


@dataclass(frozen=True, slots=True)
class Inner:
    """Something a command runs."""

    # The last word of the outer command that a rule has to name in order to cover it; if that is
    # beyond the last word, only a rule without wildcards covers it.
    at: int
    words: tuple[Word, ...] = ()
    script: str | None = None
    unseen: str = ""  # why it cannot be seen; the other fields are then empty
    is_certain: bool = True  # whether it surely runs, or only may

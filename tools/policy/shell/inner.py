"""What a command runs besides itself, and the words that a program may find in its arguments."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools.policy.shell.words import Word

QUOTES = re.compile(r"""\\\n|['"\\]|\$(?=['"])""")
"""What a shell removes from a word."""

ESCAPES = re.compile(r"\\[abfnrtv]")
BETWEEN = re.compile(r"""[\s;|&<>(){}'"`$\\=:,!@%^~#]+""")
"""What may stand between the words in a text that a program runs."""

EXPANDED = re.compile(r"""`|\$[({\w'"@*]|\w\{[^{}\s,]*,[^{}\s]*\}|\{[^{}\s,]*,[^{}\s]*\}\w""")
"""What a shell would expand in a text."""

STDIN = re.compile(r"(.*/)?(stdin|stdout|stderr|tty|fd/\d+|pts/\d+)", re.DOTALL)
"""Files by which a program reads what it was given open."""


def names_stdin(text: str) -> bool:
    """Returns whether a word, or the value in an option, names the standard input."""
    values = (text, text.partition("=")[2], text[2:] if text.startswith("-") else "")
    return any(each == "-" or STDIN.fullmatch(posixpath.normpath(each)) for each in values)


def is_expanded(text: str) -> bool:
    """Returns whether a shell that is given a text would run more than its literal words."""
    return EXPANDED.search(text) is not None


def pieces_of(text: str) -> Iterator[str]:
    """Yields the words that a program may find in a text, whatever joins or quotes them."""
    yield text
    for form in dict.fromkeys((text, QUOTES.sub("", text))):
        for piece in BETWEEN.split(ESCAPES.sub(" ", form)):
            yield piece
            yield piece.strip("[]*?")
            if piece.startswith("-"):  # the value of a short option, also in a cluster
                yield from (piece[2:], piece[3:])


@dataclass(frozen=True, slots=True)
class Inner:
    """What a command runs.

    Attributes:
        at: The last word of the outer command that a rule has to name for it to be meant too; after
            the last, only a rule without wildcards means it.
        words: The words of a command.
        script: A line of a shell.
        unseen: What about it cannot be seen; the others are empty then.
        is_certain: Whether it is surely run; else it may be.
    """

    at: int
    words: tuple[Word, ...] = ()
    script: str | None = None
    unseen: str = ""
    is_certain: bool = True

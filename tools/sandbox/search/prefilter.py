r"""Whether a file is worth taking apart into lines, by what is certain from a pattern's text alone.

A plain text is looked for in the bytes of a file. Any other pattern that can take no line feed is
tried on the whole text, with `^` and `$` at every line (MULTILINE): where it fits nowhere in the
text, it fits in no line, and trying it costs no more than trying it on each.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Self

__all__ = ["PlainText", "stays_in_line"]

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

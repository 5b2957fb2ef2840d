"""Texts of others as plain lines: no markup, no controls, nothing that hides or turns around."""

from __future__ import annotations

import html
import re
import unicodedata

__all__ = ["plain_text"]

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,1000}>|<!--.{0,1000}?-->", re.DOTALL)
_JOINERS = {"\u200c", "\u200d"}
"""What scripts and emoji need, of the category that otherwise hides or turns text."""

_SELECTORS = range(0xE0100, 0xE01F0)
"""Variation selectors that no text needs and that can carry hidden bytes."""


def plain_text(text: str, most: int) -> str:
    """A text in one line of at most `most` characters.

    Tags go before character references are read, so that a text about tags keeps them.
    """
    read = unicodedata.normalize("NFC", html.unescape(_TAG.sub("", text)))
    line = " ".join("".join(" " if each.isspace() else _shown(each) for each in read).split())
    return line if len(line) <= most else f"{line[: most - 2]} …"


def _shown(character: str) -> str:
    is_hidden = unicodedata.category(character)[0] == "C" and character not in _JOINERS
    return "" if is_hidden or ord(character) in _SELECTORS else character

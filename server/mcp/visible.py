"""Makes text safe to display: shows invisible and control characters instead of sending them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from tools.core.unicode_safety import EMOJI_SELECTOR, INVISIBLE

SHOWN_KEYS = frozenset({"title", "description"})
"""Texts of a form that are only displayed; its other texts are part of the answer."""

_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
"""Maps control characters to their Unicode pictures."""

_HIDDEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
_JOINERS = f"\u200c\u200d{EMOJI_SELECTOR}"
"""Parts of words in some scripts and of emoji; between ASCII letters they are suspicious."""

_BLANK = "\u2800"
"""The Braille blank."""

_UNSEEN = re.compile(f"[{INVISIBLE}{_BLANK}]|(?<![^\0-\x7f])[{_JOINERS}]+")


def visible(text: str) -> str:
    """Returns the text on one line, with pictures or marks for control characters.

    Names, commands and documents are untrusted: their escape sequences, direction marks and
    zero-width characters must not reach the terminal.
    """
    seen = _UNSEEN.sub(lambda found: "".join(map(_mark, found[0])), text.translate(_PICTURES))
    return "".join(
        _mark(each) if unicodedata.category(each) in _HIDDEN and each not in _JOINERS else each
        for each in seen
    )


def visible_lines(text: str) -> str:
    """Makes a text visible like `visible`, but keeps line ends and tabs."""
    lines = text.replace("\t", "    ").split("\n")
    return "\n".join(visible(line) for line in lines)


def visible_form(schema: Any) -> Any:  # noqa: ANN401  # any part of a JSON Schema
    """Makes a form's titles and descriptions visible; leaves the values of answers unchanged."""
    if isinstance(schema, list):
        return [visible_form(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {key: _member(key, value) for key, value in schema.items()}


def _member(key: str, value: object) -> object:
    if key in SHOWN_KEYS and isinstance(value, str):
        return visible_lines(value)
    if key == "enumNames" and isinstance(value, list):
        return [visible(each) if isinstance(each, str) else each for each in value]
    return visible_form(value)


def _mark(character: str) -> str:
    return f"<U+{ord(character):04X}>"

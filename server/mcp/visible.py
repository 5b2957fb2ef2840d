"""Text that steers nothing: what cannot be seen is shown, not obeyed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from tools.core.invisible import EMOJI_SELECTOR, INVISIBLE

SHOWN_KEYS = frozenset({"title", "description"})
"""Texts of a form that only tell; its other texts are part of the answer."""

_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
"""Control characters to the pictures that Unicode has of them."""

_HIDDEN = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}
_JOINERS = f"\u200c\u200d{EMOJI_SELECTOR}"
"""Parts of words in several scripts, and of emoji; between letters of ASCII they only hide."""

_BLANK = "\u2800"
"""The blank of Braille."""

_UNSEEN = re.compile(f"[{INVISIBLE}{_BLANK}]|(?<![^\0-\x7f])[{_JOINERS}]+")


def visible(text: str) -> str:
    """The text on one line, with a picture or a mark in place of what would steer a terminal.

    Names, commands and documents come from anywhere: their escape sequences, marks of direction
    and characters without width are shown, not obeyed.
    """
    seen = _UNSEEN.sub(lambda found: "".join(map(_mark, found[0])), text.translate(_PICTURES))
    return "".join(map(_shown, seen))


def visible_lines(text: str) -> str:
    """The same of a text whose line ends and tabs stay."""
    lines = text.replace("\t", "    ").split("\n")
    return "\n".join(visible(line) for line in lines)


def visible_form(schema: Any) -> Any:  # noqa: ANN401  # any part of a JSON Schema
    """A form whose titles and descriptions hide nothing; what is answered stays as it is."""
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


def _shown(character: str) -> str:
    if unicodedata.category(character) not in _HIDDEN or character in _JOINERS:
        return character
    return _mark(character)


def _mark(character: str) -> str:
    return f"<U+{ord(character):04X}>"

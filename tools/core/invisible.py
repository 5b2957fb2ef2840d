"""Characters of which nothing is seen: those that Unicode counts as shown, and controls."""

from __future__ import annotations

import re

__all__ = ["EMOJI_SELECTOR", "INVISIBLE", "LONGEST_LINE", "log_line", "visible_controls"]

INVISIBLE = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0e\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff"
)
"""What stands between the brackets of a regular expression: Default_Ignorable_Code_Point of
Unicode's DerivedCoreProperties.txt, but for category Cf and the `EMOJI_SELECTOR`."""

EMOJI_SELECTOR = "\ufe0f"
"""Ignorable too, and a part of emoji."""

_PICTURES = {code: 0x2400 + code for code in range(0x20) if code not in b"\t\n"}
_PICTURES |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
"""Control characters, and the symbols that Unicode has for them."""

LONGEST_LINE = 2_000
"""Characters of a message that are logged."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]")
"""Characters that end a line, move a terminal's cursor or change its colours."""


def visible_controls(text: str) -> str:
    """Replaces control characters, which could steer a terminal, by their symbols."""
    return text.replace("\r\n", "\n").translate(_PICTURES)


def log_line(text: str) -> str:
    """Returns a text as one line of the log, in which nothing steers a terminal."""
    more = " […]" if len(text) > LONGEST_LINE else ""
    return _CONTROL.sub(_escaped, text[:LONGEST_LINE]) + more


def _escaped(match: re.Match[str]) -> str:
    return "\\n" if match[0] == "\n" else f"\\x{ord(match[0]):02x}"

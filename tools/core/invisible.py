"""Characters of which nothing is seen: those that Unicode counts as shown, and controls."""

from __future__ import annotations

import re
from collections.abc import Iterable

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

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that end or reorder a line, move a terminal's cursor or change its colours."""

# Strings, which `re` compiles and caches on first use: a start needs none of them.
_EMOJI = "\u00a9\u00ae\u203c\u2049\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_JOINING = "\u0600-\u1cff\ua800-\uabff\U00010a00-\U00011fff"
"""Arabic, the scripts of India and of South-East Asia, Mongolian: words need joiners there."""

_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RIGHT_TO_LEFT = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff]"

_ORDINARY = (
    f"(?<=[{_EMOJI}])[\ufe0e\ufe0f]"  # how an emoji is drawn, with or without a skin
    "|(?<=[0-9#*])\ufe0f(?=\u20e3)"  # keycaps
    f"|(?<=[{_EMOJI}{EMOJI_SELECTOR}])\u200d(?=[{_EMOJI}])"  # several emoji as one
    "|(?<=\U0001f3f4)\U000e0067\U000e0062[\U000e0061-\U000e007a]{3}\U000e007f"  # parts of Britain
    f"|(?<=[{_JOINING}])[\u200c\u200d](?![\u200c\u200d])"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180d]"  # forms of Mongolian letters
    f"|(?<=[{_HAN}])[\ufe00-\ufe02\U000e0100-\U000e01ef](?![\ufe00-\ufe0f\U000e0100-\U000e01ef])"
)
"""Where such characters belong to what is seen."""

_MARKS = "[\u200e\u200f\u061c]"
"""Marks of direction, which change nothing but the order of what is seen."""

_HIDDEN = (
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)"  # control characters, terminals' among them
    f"|[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb{INVISIBLE}"
    f"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a{EMOJI_SELECTOR}\ud800-\udfff]"
)


def hidden(text: str) -> list[str]:
    """The characters of a text that are not seen, or that steer a terminal, each once.

    What belongs to what is seen is none: line ends, joiners in scripts that need them, selectors
    behind emoji and Han, marks of direction beside letters that run from right to left.
    """
    if (text.isascii() and text.isprintable()) or not re.search(_HIDDEN, text):
        return []
    rest = re.sub(_ORDINARY, "", text)
    if re.search(_RIGHT_TO_LEFT, rest):
        rest = re.sub(_MARKS, "", rest)
    return list(dict.fromkeys(re.findall(_HIDDEN, rest)))


def codes(characters: Iterable[str]) -> str:
    """How Unicode names characters: `U+200B, U+FEFF`."""
    return ", ".join(f"U+{ord(each):04X}" for each in characters)


def revealed(text: str) -> str:
    """The text with the code of each character in its place that `hidden` finds."""
    found = set(hidden(text))
    if not found:
        return text

    def shown(match: re.Match[str]) -> str:
        each = match[0]
        return each if match["ordinary"] or each not in found else f"<U+{ord(each):04X}>"

    return re.sub(f"(?P<ordinary>{_ORDINARY})|{_HIDDEN}", shown, text)


def encodable(text: str) -> str:
    """Replaces each half of a surrogate pair, which UTF-8 cannot carry, by a question mark.

    Names of files that are not UTF-8 have them, and JSON may: no disk and no transport takes one,
    and no embedder.
    """
    return text.encode(errors="replace").decode()


def visible_controls(text: str) -> str:
    """Replaces control characters, which could steer a terminal, by their symbols."""
    return text.replace("\r\n", "\n").translate(_PICTURES)


def log_line(text: str, longest: int | None = LONGEST_LINE) -> str:
    """Returns a text as one line of the log, in which nothing steers a terminal."""
    more = " […]" if longest is not None and len(text) > longest else ""
    return _CONTROL.sub(_escaped, text[:longest]) + more


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()

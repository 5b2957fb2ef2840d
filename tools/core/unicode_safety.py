"""Detects characters that are invisible or control a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable

INVISIBLE = (
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2065\u3164\ufe00-\ufe0e\uffa0\ufff0-\ufff8"
    "\U000e0000-\U000e0fff"
)
"""For a character class: Default_Ignorable_Code_Point of Unicode's DerivedCoreProperties.txt,
without category Cf and the `EMOJI_SELECTOR`."""

EMOJI_SELECTOR = "\ufe0f"
"""Ignorable too, but a part of emoji."""

_PICTURES = {code: 0x2400 + code for code in range(0x20) if code not in b"\t\n"}
_PICTURES |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
"""The visible symbols of control characters."""

LONGEST_LINE = 2_000
"""Maximum characters of a message that are logged."""

_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
"""Characters that end or reorder a line, move a terminal's cursor or change its colours."""

# Strings, which `re` compiles and caches on first use: the start needs none of them.
_EMOJI = "\u00a9\u00ae\u203c\u2049\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_JOINING = "\u0600-\u1cff\ua800-\uabff\U00010a00-\U00011fff"
"""Arabic, the scripts of India and South-East Asia, and Mongolian, whose words need joiners."""

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
"""Invisible characters that belong to visible text."""

_MARKS = "[\u200e\u200f\u061c]"
"""Direction marks, which only change the order of visible text."""

_HIDDEN = (
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)"  # control characters, terminals' among them
    f"|[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb{INVISIBLE}"
    f"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a{EMOJI_SELECTOR}\ud800-\udfff]"
)


def hidden(text: str) -> list[str]:
    """Returns each distinct character of a text that is invisible or controls a terminal.

    Characters that belong to visible text are excluded: line ends, joiners in scripts that need
    them, selectors after emoji and Han, and direction marks in right-to-left text.
    """
    if (text.isascii() and text.isprintable()) or not re.search(_HIDDEN, text):
        return []
    rest = re.sub(_ORDINARY, "", text)
    if re.search(_RIGHT_TO_LEFT, rest):
        rest = re.sub(_MARKS, "", rest)
    return list(dict.fromkeys(re.findall(_HIDDEN, rest)))


def codes(characters: Iterable[str]) -> str:
    """Returns Unicode's names for characters: `U+200B, U+FEFF`."""
    return ", ".join(f"U+{ord(each):04X}" for each in characters)


def revealed(text: str) -> str:
    """Replaces each character that `hidden` finds by its code."""
    found = set(hidden(text))
    if not found:
        return text

    def reveal(match: re.Match[str]) -> str:
        each = match[0]
        return each if match["ordinary"] or each not in found else f"<U+{ord(each):04X}>"

    return re.sub(f"(?P<ordinary>{_ORDINARY})|{_HIDDEN}", reveal, text)


def encodable(text: str) -> str:
    """Replaces each unpaired surrogate, which UTF-8 cannot encode, by a question mark.

    Names of files that are not UTF-8 contain them, and JSON may. Disks, transports and embedders
    reject them.
    """
    return text.encode(errors="replace").decode()


def visible_controls(text: str) -> str:
    """Replaces control characters, which could control a terminal, by their symbols."""
    return text.replace("\r\n", "\n").translate(_PICTURES)


def log_line(text: str, longest: int | None = LONGEST_LINE) -> str:
    """Returns a text as one log line, without characters that control a terminal."""
    more = " […]" if longest is not None and len(text) > longest else ""
    return _CONTROL.sub(_escaped, text[:longest]) + more


def _escaped(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def check_whole(text: str) -> str:
    """Returns a text; raises ValueError if it cannot be encoded."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("send whole characters; it holds half of a surrogate pair.") from None
    return text


def check_passable(text: str) -> str:
    """Returns a text; raises ValueError if it cannot be passed to a program."""
    if "\0" in text:
        raise ValueError("send no NUL character; no program can be given one.")
    return check_whole(text)

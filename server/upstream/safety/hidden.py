"""Characters that a person who reads a definition does not see, but a model does."""

from __future__ import annotations

import re

from tools.core.invisible import EMOJI_SELECTOR, INVISIBLE

__all__ = ["hidden"]

_EMOJI = "\u00a9\u00ae\u203c\u2049\u2100-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_JOINING = "\u0600-\u1cff\ua800-\uabff\U00010a00-\U00011fff"
"""Arabic, the scripts of India and of South-East Asia, Mongolian: words need joiners there."""

_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefe\U00010800-\U00010fff]")

_ORDINARY = re.compile(
    f"(?<=[{_EMOJI}])[\ufe0e\ufe0f]"  # how an emoji is drawn, with or without a skin
    "|(?<=[0-9#*])\ufe0f(?=\u20e3)"  # keycaps
    f"|(?<=[{_EMOJI}{EMOJI_SELECTOR}])\u200d(?=[{_EMOJI}])"  # several emoji as one
    "|(?<=\U0001f3f4)\U000e0067\U000e0062[\U000e0061-\U000e007a]{3}\U000e007f"  # parts of Britain
    f"|(?<=[{_JOINING}])[\u200c\u200d](?![\u200c\u200d])"
    "|(?<=[\u1820-\u18aa])[\u180b-\u180d]"  # forms of Mongolian letters
    f"|(?<=[{_HAN}])[\ufe00-\ufe02\U000e0100-\U000e01ef](?![\ufe00-\ufe0f\U000e0100-\U000e01ef])"
)
"""Where such characters belong to what is seen."""

_MARKS = re.compile("[\u200e\u200f\u061c]")
"""Marks of direction, which change nothing but the order of what is seen."""

_HIDDEN = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)"  # control characters, terminals' among them
    f"|[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb{INVISIBLE}"
    f"\U0001bca0-\U0001bca3\U0001d173-\U0001d17a{EMOJI_SELECTOR}\ud800-\udfff]"
)


def hidden(text: str) -> list[str]:
    """The characters of a text that are not seen, or that steer a terminal, each once.

    What belongs to what is seen is none: line ends, joiners in scripts that need them, selectors
    behind emoji and Han, marks of direction beside letters that run from right to left.
    """
    if (text.isascii() and text.isprintable()) or not _HIDDEN.search(text):
        return []
    rest = _ORDINARY.sub("", text)
    if _RIGHT_TO_LEFT.search(rest):
        rest = _MARKS.sub("", rest)
    return list(dict.fromkeys(_HIDDEN.findall(rest)))

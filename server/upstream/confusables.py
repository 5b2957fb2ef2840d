"""Letters that are taken for those of ASCII (from confusables.txt of Unicode's UTS #39)."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["is_mixed", "skeleton"]

# ruff: noqa: RUF001  # these are what it is about
# fmt: off
_TAKEN_FOR = {
    "a": "аαɑ", "b": "ЬƄ", "c": "сϲᴄ", "d": "ԁժ", "e": "еҽ", "f": "ғƒ", "g": "ɡց", "h": "һհ",
    "i": "іιıɩ", "j": "јϳյ", "k": "кκ", "l": "ӏǀ1", "m": "м", "n": "ոռη", "o": "оοօσ0", "p": "рρ",
    "q": "ԛգզ", "r": "гᴦ", "s": "ѕ", "t": "тτ", "u": "υսᴜ", "v": "νѵ", "w": "ԝѡω", "x": "хχ",
    "y": "уγүყ", "z": "ᴢ",
    "A": "АΑ", "B": "ВΒ", "C": "СϹ", "E": "ЕΕ", "F": "Ϝ", "G": "Ԍ", "H": "НΗ", "I": "ІΙӀ",
    "J": "ЈͿ", "K": "КΚ", "M": "МΜ", "N": "Ν", "O": "ОΟՕ", "P": "РΡ", "S": "ЅՏ", "T": "ТΤ",
    "V": "Ѵ", "W": "Ԝ", "X": "ХΧ", "Y": "УΥҮ", "Z": "Ζ",
}
# fmt: on
_SHAPES = str.maketrans({each: letter for letter, all_ in _TAKEN_FOR.items() for each in all_})
_LETTERS = re.compile(r"[^\W\d_]+")
_ASCII = re.compile(r"[A-Za-z]")
_FOREIGN = frozenset(
    each
    for each in "".join(_TAKEN_FOR.values())
    if not unicodedata.name(each).startswith(("LATIN", "DIGIT"))
)
"""Of those, the letters of other alphabets."""


def skeleton(name: str) -> str:
    """What a name looks like: two names with one skeleton are easily taken for each other."""
    shapes = unicodedata.normalize("NFKC", name).translate(_SHAPES)
    return shapes.lower().replace("rn", "m")


def is_mixed(name: str) -> bool:
    """Whether a word of the name has letters of ASCII beside others that are taken for such."""
    return not name.isascii() and any(
        _ASCII.search(word) and not _FOREIGN.isdisjoint(word) for word in _LETTERS.findall(name)
    )

"""Speakers of turns, and whether a query names them.

Most questions about a conversation name the person whose words answer them. BM25 hardly reflects
that: in a conversation of two, every name appears in half of the turns or more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from storage.tokenize import STOP_WORDS, fold_accents, is_spaceless

MOST_WORDS = 4  # a heading whose first part has more words is not a name
_WORD = r"[^\W\d_]+"


def speaker_of(heading: str) -> str:
    """Returns the name at the beginning of a turn's heading, as in "Ann Lee, 8 May 2023"; or ""."""
    name = heading.split(",", 1)[0].strip()
    return name if len(name.split()) <= MOST_WORDS else ""


def named_speakers(query: str, speakers: Iterable[str]) -> frozenset[str]:
    """Returns the speakers that a query names, by the whole name or a word of it.

    A name that is also a common English word, such as Will, must be capitalized.
    """
    folded = fold_accents(query)
    written = set(re.findall(_WORD, folded))
    words = {word.casefold() for word in written}

    def is_named(speaker: str) -> bool:
        name = fold_accents(speaker)
        if is_spaceless(name):
            return name in folded
        return any(
            part in written if part.casefold() in STOP_WORDS else part.casefold() in words
            for part in re.findall(_WORD, name)
            if len(part) > 1
        )

    return frozenset(speaker for speaker in speakers if speaker and is_named(speaker))

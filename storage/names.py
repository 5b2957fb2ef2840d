"""The one name resolver: from a name as it was asked for to the spelling that is stored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from storage.tokenize import fold_accents, is_spaceless

__all__ = ["FUZZY_FLOOR", "NameMatch", "fold", "resolve"]

FUZZY_FLOOR = 0.82
"""Similarity under which two spellings are two names: one typo in six letters, two in twelve."""

_APOSTROPHES = re.compile("['`\u2018\u2019\u02bc]")
_SEPARATORS = re.compile(r"[\s.,;:_/\\()\"\u2010-\u2015-]+")


@dataclass(frozen=True, slots=True)
class NameMatch:
    """A stored name that was found for one asked for.

    Attributes:
        name: As it is stored.
        score: How alike the two are, 0 to 1.
        how: What it took to find it.
    """

    name: str
    score: float
    how: Literal["exact", "folded", "partial", "fuzzy"]


def fold(name: str) -> str:
    """The form in which two spellings of a name are equal.

    Case, accents, apostrophes and the marks between words do not count, and "Last, First" is
    "First Last".
    """
    last, comma, first = name.partition(",")
    if comma and first.strip() and "," not in first:
        name = f"{first} {last}"
    bare = _APOSTROPHES.sub("", fold_accents(name).casefold())
    return _SEPARATORS.sub(" ", bare).strip() or name.casefold().strip()


def resolve(name: str, known: Iterable[str], *, limit: int = 3) -> list[NameMatch]:
    """The stored names that a name means, best first; empty when none is like it.

    The first way that finds anything decides, so that a sure match is never diluted by a likely
    one: the same spelling; the same but for `fold`; whole words of one in the other; a typo away
    (optimal string alignment similarity of at least `FUZZY_FLOOR`).

    Args:
        name: As it was asked for.
        known: The stored names.
        limit: How many matches at most.
    """
    folded_names = {stored: fold(stored) for stored in known}
    if name in folded_names:
        return [NameMatch(name, 1.0, "exact")]
    asked = fold(name)
    if not asked:
        return []
    matches = [
        NameMatch(stored, 1.0, "folded")
        for stored, folded in folded_names.items()
        if folded == asked
    ]
    matches = matches or _partial(asked, folded_names) or _fuzzy(asked, folded_names)
    return sorted(matches, key=lambda match: (-match.score, match.name))[:limit]


def _partial(asked: str, folded_names: Mapping[str, str]) -> list[NameMatch]:
    """Names that hold every word asked for, or of several words each asked for."""
    asked_words = set(asked.split())
    matches = []
    for stored, folded in folded_names.items():
        words = set(folded.split())
        holds = asked_words <= words or (len(words) > 1 and words < asked_words)
        if holds or (is_spaceless(asked) and len(asked) > 1 and asked in folded):
            shorter, longer = sorted((len(asked), len(folded)))
            matches.append(NameMatch(stored, shorter / longer, "partial"))
    return matches


def _fuzzy(asked: str, folded_names: Mapping[str, str]) -> list[NameMatch]:
    from rapidfuzz.distance import OSA  # noqa: PLC0415  # imported on first use

    in_order = " ".join(sorted(asked.split()))
    matches = []
    for stored, folded in folded_names.items():
        score = max(
            OSA.normalized_similarity(asked, folded, score_cutoff=FUZZY_FLOOR),
            OSA.normalized_similarity(
                in_order, " ".join(sorted(folded.split())), score_cutoff=FUZZY_FLOOR
            ),
        )
        if score:
            matches.append(NameMatch(stored, score, "fuzzy"))
    return matches

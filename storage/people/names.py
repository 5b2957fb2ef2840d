"""The one name resolver: from a name as it was asked for to the spelling that is stored."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from storage.people.likeness import likely
from storage.people.models import How
from storage.tokenize import fold_accents

_APOSTROPHES = re.compile("['`\u2018\u2019\u02bc]")
_SEPARATORS = re.compile(r"[\s\0.,;:_/\\()\"\u00b7\u30fb\u2010-\u2015-]+")


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
    how: How


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


def resolve(
    name: str, known: Iterable[str | tuple[str, str]], *, limit: int = 3
) -> list[NameMatch]:
    """The stored names that a name means, best first; empty when none is like it.

    The first way that finds anything decides, so that a sure match is never diluted by a likely
    one: the same spelling of a name, then of an alias; the same but for `fold`; then as
    `storage.people.likeness.likely` has it, whole words of one in the other, then typos.

    Args:
        name: As it was asked for.
        known: The stored names; an alias comes as a pair (alias, name).
        limit: How many matches at most.
    """
    spellings: dict[str, set[str]] = {}
    for each in known:
        spelling, canonical = (each, each) if isinstance(each, str) else each
        spellings.setdefault(spelling, set()).add(canonical)
    owners = spellings.get(name, set())
    if name in owners:
        return [NameMatch(name, 1.0, "exact")][:limit]
    if owners:
        return [NameMatch(owner, 1.0, "alias") for owner in sorted(owners)][:limit]
    return _resolve_folded(fold(name), spellings)[:limit]


def _resolve_folded(asked: str, spellings: dict[str, set[str]]) -> list[NameMatch]:
    folded: dict[str, set[str]] = {}
    for spelling, owners in spellings.items():
        folded.setdefault(fold(spelling), set()).update(owners)
    if not asked:
        return []
    if asked in folded:
        return [NameMatch(owner, 1.0, "folded") for owner in sorted(folded[asked])]
    best: dict[str, NameMatch] = {}
    for each in likely(asked, folded):  # best first
        for owner in sorted(folded[each.folded]):
            best.setdefault(owner, NameMatch(owner, each.score, each.how))
    return sorted(best.values(), key=lambda match: (-match.score, match.name))

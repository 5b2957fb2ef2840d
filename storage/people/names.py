"""Resolves a name as asked for to the stored spelling."""

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
    """A stored name that matches the one asked for."""

    name: str
    score: float  # the similarity, 0 to 1
    how: How


def fold(name: str) -> str:
    """Folds a name to the form by which spellings are compared.

    Case, accents, apostrophes and punctuation are ignored, and "Last, First" is "First Last".
    """
    last, comma, first = name.partition(",")
    if comma and first.strip() and "," not in first:
        name = f"{first} {last}"
    bare = _APOSTROPHES.sub("", fold_accents(name).casefold())
    return _SEPARATORS.sub(" ", bare).strip() or name.casefold().strip()


def resolve(
    name: str, known: Iterable[str | tuple[str, str]], *, limit: int = 3
) -> list[NameMatch]:
    """Returns the stored names that a name matches, best first; empty if none resembles it.

    The first method that finds anything decides, so that a certain match is never mixed with likely
    ones: the same spelling of a name, then of an alias; the same after `fold`; then
    `storage.people.likeness.likely`, whole words of one in the other, then typos. A known alias is
    a pair (alias, name).
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

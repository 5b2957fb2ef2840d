"""Groups of a directory: their members, and matching of group names."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from storage.directory.results import GroupSize, Match
from storage.people.names import fold
from storage.tokenize import tokenize

_GENERIC = (
    "department dept division program programme school faculty institute center centre section"
    " group unit office"
)
"""Words for kinds of groups, which do not identify a group."""

_SIMILAR = 0.8
_NEAR = 45.0  # of 100, minimum score of a suggestion
_NEAREST = 5
_PREFIX = 3
"""Minimum letters that match as the beginning of a word, such as "neuro"."""


@dataclass(frozen=True, slots=True)
class _Group:
    """A group."""

    value: str
    own: tuple[int, ...]
    associated: tuple[int, ...]  # those who are only associated with it
    terms: frozenset[str]


class Groups:
    """The groups of one field.

    `values` has a number for each member, its own groups, and those it is associated with.
    """

    def __init__(self, values: Iterable[tuple[int, Sequence[str], Sequence[str]]]) -> None:
        spellings: dict[str, Counter[str]] = defaultdict(Counter)
        members: tuple[dict[str, dict[int, None]], ...] = (defaultdict(dict), defaultdict(dict))
        for number, own, associated in values:
            for into, names in zip(members, (own, associated), strict=True):
                for name in names:
                    spellings[fold(name)][name] += 1
                    into[fold(name)][number] = None
        self._groups: dict[str, _Group] = {}
        for folded, written in sorted(spellings.items()):
            own_ones = members[0].get(folded, {})
            others = [each for each in members[1].get(folded, {}) if each not in own_ones]
            value = written.most_common(1)[0][0]
            self._groups[folded] = _Group(
                value, tuple(own_ones), tuple(others), _identifying_terms(value)
            )

    def sizes(self) -> list[GroupSize]:
        """Returns every group by name, with its size."""
        return [
            GroupSize(group.value, len(group.own), len(group.associated))
            for group in self._groups.values()
        ]

    def find(self, value: str) -> tuple[Match, list[str]]:
        """Returns the folded names of the groups that a name matches, likeliest first."""
        folded = fold(value)
        if folded in self._groups:
            return "exact", [folded]
        partial = self._partial(_identifying_terms(value))
        if partial:
            return "partial", partial
        fuzzy = self._fuzzy(folded)
        return ("fuzzy", fuzzy) if fuzzy else ("none", [])

    def nearest(self, value: str) -> list[str]:
        """Returns the groups with the nearest names, as they are spelled."""
        from rapidfuzz import fuzz, process

        found = process.extract(
            fold(value), list(self._groups), scorer=fuzz.WRatio, score_cutoff=_NEAR, limit=_NEAREST
        )
        return [self._groups[folded].value for folded, _, _ in found]

    def value(self, folded: str) -> str:
        """Returns the spelling of a group."""
        return self._groups[folded].value

    def members(self, folded: Iterable[str]) -> tuple[list[int], list[int]]:
        """Returns the members of any of these groups, and those only associated with them."""
        groups = [self._groups[each] for each in folded]
        own = dict.fromkeys(number for group in groups for number in group.own)
        associated = dict.fromkeys(number for group in groups for number in group.associated)
        return list(own), [number for number in associated if number not in own]

    def _partial(self, asked: frozenset[str]) -> list[str]:
        """Finds groups that contain all the words, or whose words are all contained in them."""
        same = [folded for folded, group in self._groups.items() if group.terms == asked]
        if same or not asked:
            return same
        shares = {
            folded: _overlap(asked, group.terms)
            for folded, group in self._groups.items()
            if asked <= group.terms or (group.terms and group.terms <= asked)
        }
        return _ranked(shares)

    def _fuzzy(self, asked: str) -> list[str]:
        """Finds groups that differ by a typo, as a whole or in each word."""
        from rapidfuzz.distance import OSA

        words = [word for word in asked.split() if not _generic().issuperset(tokenize(word))]
        shares = {}
        for folded in self._groups:
            whole = OSA.normalized_similarity(asked, folded)
            each = [max(_like(word, other) for other in folded.split()) for word in words]
            score = max(
                whole if whole >= _SIMILAR else 0.0,
                sum(each) / len(each) - 0.01 * len(folded.split()) if each and all(each) else 0.0,
            )
            if score > 0:
                shares[folded] = score
        return _ranked(shares)


def _identifying_terms(value: str) -> frozenset[str]:
    """Returns the words that identify a group; all of them if all are generic."""
    terms = frozenset(tokenize(value))
    return terms - _generic() or terms


@cache
def _generic() -> frozenset[str]:
    return frozenset(tokenize(_GENERIC))


def _overlap(asked: frozenset[str], terms: frozenset[str]) -> float:
    return len(asked & terms) / len(asked | terms)


def _like(word: str, other: str) -> float:
    from rapidfuzz.distance import OSA

    if len(word) >= _PREFIX and other.startswith(word):
        return 0.9
    return float(OSA.normalized_similarity(word, other, score_cutoff=_SIMILAR))


def _ranked(shares: Mapping[str, float]) -> list[str]:
    return sorted(shares, key=lambda folded: (-shares[folded], folded))

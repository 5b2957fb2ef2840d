"""An index of many names, which finds those that match a name.

It finds what `likely` finds, but among thousands in a few milliseconds, by the words of the names.
It always returns a match if a name is only a typo away. A name may be given by some of its words,
in any order, by initials, with or without titles, and with words that others write together: "van
der Berg", "Mary-Ann".
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from storage.people.models import How
from storage.people.name_matching import abbreviates, letters, plain_name
from storage.tokenize import fold, is_spaceless

_PARTICLES = frozenset(
    """
    al bin da dal de degli del della den der des di dos du el ibn la las le los mac mc o saint san
    santa st te ten ter van vande vander ver von vom zu zum zur
    """.split()  # noqa: SIM905  # particles read best as text
)
"""Words that some write together with the next one, folded."""

_HYPHENS = re.compile("[\u2010-\u2015-]")
_SHORTLIST = 400  # maximum names that are compared word by word

_WHOLE_FLOOR = 0.8
"""Below this similarity two whole names differ: one typo in five letters, blanks included."""

_INITIALS = range(2, 4)  # the number of initials written as one word: "Boyle TM"

_WAYS: tuple[How, ...] = ("exact", "alias", "folded", "partial", "fuzzy")


@dataclass(frozen=True, slots=True)
class IndexedName:
    """A found name."""

    owner: int
    spelling: str
    score: float  # its similarity to the name asked for, 0 to 1
    how: How


@dataclass(frozen=True)
class _Name:
    """A spelling of a name, or its form with particles joined to the next word."""

    owner: int
    spelling: str
    is_alias: bool
    plain: str
    words: tuple[str, ...]

    @cached_property
    def has_initial(self) -> bool:
        """Whether one of its words is a single letter."""
        return any(len(word) == 1 for word in self.words)


class NameIndex:
    """Finds names similar to a given one among (owner, spelling, is_alias)."""

    def __init__(self, names: Iterable[tuple[int, str, bool]]) -> None:
        self._names: list[_Name] = []
        self._folded: dict[str, list[int]] = defaultdict(list)
        self._plain: dict[str, list[int]] = defaultdict(list)
        self._joined: dict[str, list[int]] = defaultdict(list)
        self._holding: dict[str, list[int]] = defaultdict(list)
        for owner, spelling, is_alias in names:
            folded = fold(spelling)
            for plain in _forms(spelling, folded):
                number = len(self._names)
                words = tuple(plain.split())
                self._names.append(_Name(owner, spelling, is_alias, plain, words))
                self._folded[folded].append(number)
                self._plain[plain].append(number)
                self._joined["".join(words)].append(number)
                for word in set(words):
                    self._holding[word].append(number)
        self._vocabulary = list(self._holding)
        self._spaceless = [word for word in self._vocabulary if is_spaceless(word)]

    def find(self, asked: str, limit: int) -> list[IndexedName]:
        """Returns the matching names, most certain first, each owner once."""
        folded = fold(asked)
        plain = plain_name(folded)
        words = tuple(plain.split())
        if not words or not any(len(word) > 1 or is_spaceless(word) for word in words):
            return []  # initials alone identify no one
        found = [self._sure(number, asked) for number in self._folded.get(folded, ())]
        found += self._partial(plain, words)
        several = sum(len(word) > 1 for word in words) > 1  # a single word is probably correct
        is_sure = any(each.score == 1 or (each.how == "partial" and not several) for each in found)
        if not is_sure:
            found += self._fuzzy(plain, words)
        return _best(found, limit)

    def knows(self, asked: str) -> bool:
        """Returns whether the name is known, regardless of case, accents and punctuation."""
        return fold(asked) in self._folded

    def _sure(self, number: int, asked: str) -> IndexedName:
        name = self._names[number]
        same = name.spelling == asked
        how: How = "alias" if name.is_alias else "exact" if same else "folded"
        return IndexedName(name.owner, name.spelling, 1.0, how)

    def _match(self, number: int, score: float, how: How) -> IndexedName:
        name = self._names[number]
        return IndexedName(name.owner, name.spelling, score, how)

    def _partial(self, plain: str, words: Sequence[str]) -> list[IndexedName]:
        """Finds names that contain all words asked for, or whose words were all asked for."""
        same = [*self._plain.get(plain, ()), *self._joined.get("".join(words), ())]
        found = [self._match(number, 1.0, "folded") for number in same]
        near = {word: self._alike(word) for word in words}
        return found + [
            self._match(number, score, "partial" if is_whole else "fuzzy")
            for number, score, is_whole in self._align(words, near)
        ]

    def _alike(self, word: str) -> dict[str, float]:
        """Returns the word itself, and in scripts without spaces the words that contain it."""
        alike = {word: 1.0} if word in self._holding else {}
        if self._spaceless and len(word) > 1 and is_spaceless(word):
            holding = (each for each in self._spaceless if word in each)
            alike |= {each: len(word) / len(each) for each in holding}
        return alike

    def _fuzzy(self, plain: str, words: Sequence[str]) -> list[IndexedName]:
        near = {word: self._alike(word) | self._typos(word, len(words)) for word in words}
        found = {number: score for number, score, _ in self._align(words, near)}
        for number, score in self._whole_matches(plain, words, near):
            found[number] = max(score, found.get(number, 0.0))
        return [self._match(number, score, "fuzzy") for number, score in found.items()]

    def _typos(self, word: str, among: int) -> dict[str, float]:
        """Returns the words of names that are one or two typos away."""
        from rapidfuzz.distance import OSA
        from rapidfuzz.process import extract

        edits = _edits(word, among)
        if not edits:
            return {}
        near = extract(word, self._vocabulary, scorer=OSA.distance, score_cutoff=edits, limit=None)
        return {each: 1 - distance / max(len(word), len(each)) for each, distance, _ in near}

    def _align(
        self, words: Sequence[str], near: Mapping[str, Mapping[str, float]]
    ) -> Iterator[tuple[int, float, bool]]:
        """Finds names whose words match those asked for; see `_share`."""
        shared: dict[int, float] = defaultdict(float)
        partners: Counter[int] = Counter()
        for word in words:
            best: dict[int, float] = {}
            for partner, score in near[word].items():
                for number in self._holding[partner]:
                    if score > best.get(number, 0.0):
                        best[number] = score
            partners.update(best.keys())
            for number, score in best.items():
                shared[number] += score * len(word)
        if not any(len(word) <= _INITIALS[-1] for word in words):
            # A word without a partner stays without, unless one of them is an initial.
            shared = {
                number: letters_shared
                for number, letters_shared in shared.items()
                if partners[number] >= min(len(words), len(self._names[number].words))
                or self._names[number].has_initial
            }
        for number in sorted(shared, key=shared.__getitem__, reverse=True)[:_SHORTLIST]:
            score, is_whole = _share(words, self._names[number].words, near)
            if score:
                yield number, score, is_whole

    def _whole_matches(
        self, plain: str, words: Sequence[str], near: Mapping[str, Mapping[str, float]]
    ) -> Iterator[tuple[int, float]]:
        """Finds names that are a typo away as a whole, even a missing blank."""
        from rapidfuzz.distance import OSA
        from rapidfuzz.process import extract

        alike = {
            number for word in words for partner in near[word] for number in self._holding[partner]
        }
        choices = {self._names[number].plain for number in alike}
        scorer = OSA.normalized_similarity
        found = extract(plain, choices, scorer=scorer, score_cutoff=_WHOLE_FLOOR, limit=_SHORTLIST)
        for name, score, _ in found:
            for number in self._plain[name]:
                yield number, score
        if not found:
            joined = "".join(words)
            for name, score, _ in extract(
                joined, self._joined.keys(), scorer=scorer, score_cutoff=_WHOLE_FLOOR, limit=20
            ):
                for number in self._joined[name]:
                    yield number, score


def _forms(spelling: str, folded: str) -> list[str]:
    """Returns a name's plain forms: as it is, and with joined particles and hyphenated words."""
    plain = plain_name(folded)
    forms = {plain: None}
    if _HYPHENS.search(spelling):
        forms[plain_name(fold(_HYPHENS.sub("", spelling)))] = None
    words, together = plain.split(), ""
    glued = []
    for place, word in enumerate(words):
        together += word
        if word not in _PARTICLES or place == len(words) - 1:
            glued.append(together)
            together = ""
    forms[" ".join(glued)] = None
    return [form for form in forms if form]


def _edits(word: str, among: int) -> int:
    """Returns the typos allowed in one of `among` words."""
    if is_spaceless(word):
        return int(len(word) > 2)  # noqa: PLR2004  # of two characters one is half the name
    if len(word) < (3 if among > 1 else 4):
        return 0
    return 1 if len(word) < 8 else 2  # noqa: PLR2004  # a quarter of the letters at most


def _share(
    asked: Sequence[str], name: Sequence[str], near: Mapping[str, Mapping[str, float]]
) -> tuple[float, bool]:
    """Compares two names word by word.

    Returns the share of matched letters in the longer name, 0 if a word asked for has no partner
    while the name has words left; and whether every word has a partner.
    """
    left = list(name)
    shared, lonely = 0.0, []
    for word in sorted(asked, key=len, reverse=True):
        partners = near[word]
        partner = max(left, key=lambda each: partners.get(each, 0.0), default="")  # used at once
        score = partners.get(partner, 0.0)
        if score and (len(word) > 1 or is_spaceless(word)):
            left.remove(partner)
            shared += len(word) * score
        else:
            lonely.append(word)
    if not shared:
        return 0.0, False  # initials alone identify no one
    is_whole = True
    for word in lonely:
        taken = _abbreviated(word, left)
        shared += len(taken)
        for each in taken:
            left.remove(each)
        is_whole = is_whole and bool(taken)
    if not is_whole and (len(name) == 1 or any(len(each) > 1 for each in left)):
        return 0.0, False
    return min(1.0, shared / max(letters(asked), letters(name))), is_whole


def _abbreviated(word: str, left: Sequence[str]) -> list[str]:
    """Returns the words that a word abbreviates, or the initial that abbreviates it.

    An initial in a name matches a word asked for only if nothing else of the name is left.
    """
    for each in left:
        is_initial = len(word) == 1 or all(len(other) == 1 for other in left)
        if is_initial and abbreviates(word, each):
            return [each]
    if len(word) in _INITIALS:
        for start in range(len(left) - len(word) + 1):
            run = left[start : start + len(word)]
            if all(each.startswith(letter) for letter, each in zip(word, run, strict=True)):
                return list(run)
    return []


def _best(found: Collection[IndexedName], limit: int) -> list[IndexedName]:
    best: dict[int, IndexedName] = {}
    for each in sorted(found, key=lambda one: (_WAYS.index(one.how), -one.score, one.owner)):
        best.setdefault(each.owner, each)
    return list(best.values())[:limit]

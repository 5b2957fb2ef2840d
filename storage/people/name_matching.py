"""Folds names, and finds stored names that match one: same words, initials, titles and typos."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from storage.tokenize import is_spaceless

FUZZY_FLOOR = 0.82
"""Below this similarity two spellings are different names: one typo in six letters, two in twelve.
"""

NEAR_FLOOR = 0.6  # below this similarity a name is not worth suggesting

_TITLES = frozenset(
    """
    dr prof professor mr mrs ms miss mx sir dame lord lady rev hon
    herr frau dipl ing monsieur mme mlle senor senora sr sra dott ir
    phd dphil md mph msc bsc mba pharmd dvm dds frcp facs esq jr ii iii emeritus emerita
    """.split()  # noqa: SIM905  # titles read best as text
)
"""Words next to a name that do not identify a person, folded."""

_HONORIFICS = ("先生", "女士", "小姐", "教授", "博士", "老师", "老師", "さん", "様", "씨", "님")
"""Titles that follow a name in scripts without spaces."""


@dataclass(frozen=True, slots=True)
class Likeness:
    """A folded name that resembles the one asked for."""

    folded: str
    score: float  # the similarity, above 0 and up to 1
    how: Literal["partial", "fuzzy"]  # "partial" for words in common, "fuzzy" for typos


def likely(asked: str, names: Iterable[str]) -> list[Likeness]:
    """Returns the names that are probably meant, best first, by the first method that finds any.

    First whole words of one in the other, where titles are ignored and an initial matches a word;
    then names a typo away as a whole; then names with a typo in each word.
    """
    plain = {name: plain_name(name) for name in names}
    meant = plain_name(asked)
    if not meant:
        return []
    return _partial(meant, plain) or _fuzzy(meant, plain, FUZZY_FLOOR)


def nearest(asked: str, names: Iterable[str]) -> list[Likeness]:
    """Returns the nearest names, best first, including unlikely ones."""
    plain = {name: plain_name(name) for name in names}
    meant = plain_name(asked)
    if not meant:
        return []
    best = {
        each.folded: each for each in (*_fuzzy(meant, plain, NEAR_FLOOR), *_partial(meant, plain))
    }
    return _ranked(best.values())


def plain_name(folded: str) -> str:
    """Strips titles from a folded name, unless nothing else is left."""
    words = folded.split()
    bare = [word for word in words if word not in _TITLES] or words
    if not is_spaceless("".join(bare)):
        return " ".join(bare)
    joined = "".join(bare)
    return (
        next((joined.removesuffix(end) for end in _HONORIFICS if joined.endswith(end)), "")
        or joined
    )


def _partial(meant: str, plain: Mapping[str, str]) -> list[Likeness]:
    """Finds names that contain all words asked for, or whose words were all asked for."""
    share = _run_share if is_spaceless(meant) else _word_share
    words = set(meant.split())
    found = []
    for folded, name in plain.items():
        # A common whole word is required anyway, and is a cheap check.
        if share is _run_share or not words.isdisjoint(name.split()):
            score = share(meant, name)
            if score:
                found.append(Likeness(folded, score, "partial"))
    return _ranked(found)


def _run_share(meant: str, name: str) -> float:
    """Returns the share of a name without spaces that was asked for; 0 if it is not contained."""
    return len(meant) / len(name) if len(meant) > 1 and meant in name else 0.0


def _word_share(meant: str, name: str) -> float:
    """Returns the share of letters in common words; 0 if each has a word the other lacks."""
    fewer, more = sorted((meant.split(), name.split()), key=len)
    if len(fewer) == 1 and fewer == name.split() and more != fewer:
        return 0.0  # "Anna Schmidt" must not match just "Anna"
    shared = _shared_letters(fewer, more)
    return shared / max(letters(fewer), letters(more))


def _shared_letters(fewer: list[str], more: list[str]) -> int:
    """Counts letters of words that all have a partner; 0 if one has none."""
    left = list(more)
    lonely = []
    for word in fewer:
        if word in left:
            left.remove(word)
        else:
            lonely.append(word)
    same = [word for word in fewer if word not in lonely]
    if not any(len(word) > 1 for word in same):
        return 0  # initials alone identify no one
    for word in lonely:
        partner = next((other for other in left if abbreviates(word, other)), None)
        if partner is None:
            return 0
        left.remove(partner)
    return letters(same) + len(lonely)


def abbreviates(word: str, other: str) -> bool:
    """Returns whether one of two words is the initial of the other."""
    shorter, longer = sorted((word, other), key=len)
    return len(shorter) == 1 and shorter.isalpha() and longer.startswith(shorter)


def letters(words: Iterable[str]) -> int:
    """Returns the total number of letters."""
    return sum(map(len, words))


def _fuzzy(meant: str, plain: Mapping[str, str], floor: float) -> list[Likeness]:
    """Finds names a typo away as a whole, in any order of words; otherwise in each word."""
    whole = _similar(meant, plain.values(), floor)
    sorted_names = {name: _in_order(name) for name in plain.values()}
    in_order = _similar(_in_order(meant), sorted_names.values(), floor)
    scores = {
        folded: max(whole.get(name, 0.0), in_order.get(sorted_names[name], 0.0))
        for folded, name in plain.items()
    }
    if not any(scores.values()) or floor < FUZZY_FLOOR:
        by_word = _fuzzy_words(meant, plain, floor)
        scores = {folded: max(score, by_word.get(folded, 0.0)) for folded, score in scores.items()}
    return _ranked(Likeness(folded, score, "fuzzy") for folded, score in scores.items() if score)


def _fuzzy_words(meant: str, plain: Mapping[str, str], floor: float) -> dict[str, float]:
    """Finds names with a word a typo away from each word asked for."""
    asked = meant.split()
    if max(map(len, asked)) == 1:
        return {}  # initials alone identify no one
    vocabulary = {word for name in plain.values() for word in name.split()}
    similar = [_similar(word, vocabulary, floor) for word in asked]
    scores = {}
    for folded, name in plain.items():
        words = name.split()
        best = [max((near.get(word, 0.0) for word in words), default=0.0) for near in similar]
        if all(best):
            shared = sum(len(word) * score for word, score in zip(asked, best, strict=True))
            scores[folded] = shared / max(letters(asked), letters(words))
    return scores


def _in_order(name: str) -> str:
    return " ".join(sorted(name.split()))


def _similar(text: str, choices: Collection[str], floor: float) -> dict[str, float]:
    """Returns choices with an optimal string alignment similarity of at least `floor`."""
    from rapidfuzz.distance import OSA
    from rapidfuzz.process import extract

    scorer: Callable[..., float] = OSA.normalized_similarity
    found = extract(text, set(choices), scorer=scorer, score_cutoff=floor, limit=None)
    return {choice: score for choice, score, _ in found}


def _ranked(found: Iterable[Likeness]) -> list[Likeness]:
    return sorted(found, key=lambda each: (-each.score, each.folded))

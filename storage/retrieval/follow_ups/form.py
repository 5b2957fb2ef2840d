"""Follow-ups: questions that cannot stand alone, and what they become.

"And its limits?" finds nothing alone, so it is asked together with the query before it. Whatever
can stand alone is left as it was asked: words of an earlier question would only lead away from it.

Which is which, a logistic regression tells by the form of a question in English, German or Chinese:
its function words and their neighbours, in which every other word is but a shape, how many of those
bring a topic, and what stands before its pronouns. The weights were fitted by
`python -m benchmarks.follow_up_weights`. Where the form leaves room for doubt, `completion` looks
at what is found.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from storage.retrieval.follow_ups.words import (
    FUNCTION_CHARACTERS,
    FUNCTION_WORDS,
    GENERAL_CHARACTERS,
    GENERAL_WORDS,
)
from storage.tokenize import is_spaceless, tokenize

# The patterns are strings, which `re` compiles and keeps on first use: a start needs none of them.

WEIGHTS_FILE = "weights.json"
"""Beside this module: the weight of each feature."""

SURE = 0.5
"""Sum of weights above which a query is completed: one that stands alone is hurt more by it."""

LONGEST = 300
"""Characters of the earlier query that are taken over."""

MOST_READ = 200
"""Characters of a query whose form is looked at: what is longer stands alone."""

LONGEST_RUN = 3
"""Neighbours that are a feature together."""

LONGEST_ENDING = 3
"""Letters that a general word may end with."""

SHORTEST_STEM = 3
"""Letters that are left of it."""

LONGEST_WORD = 3
"""Characters of a general word of Chinese."""

_PRONOUNS = frozenset(
    """
    it its they them their theirs he him his she her hers er ihn ihm ihrem ihren ihrer sein seine
    seinem seinen seiner sie es ihr ihre ihnen dessen deren
    """.split()  # noqa: SIM905  # words read best as text
)
_THINGS = frozenset(["es", "it", "its"])
_CLAUSAL = frozenset(["dass", "if", "ob", "that"])
"""What begins the clause that "it" stands for: "is it true that"."""

_POLITE = frozenset(["Ihnen", "Ihr", "Ihre", "Ihrem", "Ihren", "Ihrer", "Sie"])
"""What within a sentence addresses the one who is asked."""

_GERMAN_POINTING = frozenset(["das", "dem", "den", "der", "die", "dies"])
_SUBORDINATE = frozenset(
    """
    if when once before after because while unless although since wenn falls bevor nachdem weil
    sobald während
    """.split()  # noqa: SIM905  # words read best as text
)
_CLASSES = {"wh": "什怎谁哪几多何", "self": "我你您咱", "pointing": "这那", "pronoun": "它他她"}
_ENDINGS = ("ing", "ed", "er", "est", "ly", "s", "en", "t", "e")
_WORD = r"\d+|[^\W\d_]+"
_WITHIN = r"[\w,] $"
"""What stands before a word within a sentence."""

_CLITIC = r"['\u2019][^\W\d_]+"
_CHARACTER = r"[a-zA-Z0-9]+|\w"
_PERSON = r"(?i)\b(?:he|him|his|she|her|hers)\b"
_NAME = (
    r"(?<=[\w,] )(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|(?:Janu|Febru)ary\b|March\b"
    r"|April\b|May\b|June\b|July\b|August\b|(?:Septem|Octo|Novem|Decem)ber\b)"
    r"[A-ZÄÖÜ]\w*[a-z]\w*"
)


def completed(query: str, earlier: Sequence[str]) -> str:
    """The query together with what it leans on.

    Args:
        query: What was asked.
        earlier: What was asked before it in the same conversation, the latest last.

    Returns:
        The query itself where nothing was said before it; else the latest earlier query that stands
        alone, or the first of all, and the query. Where the query speaks of a person, only the
        names are taken, also of the follow-ups since: what else was asked was measured to lead
        away.
    """
    said = [each for each in earlier if tokenize(each)]
    if not said:
        return query
    # The first leans on nothing, whatever its form.
    first = next((at for at in reversed(range(len(said))) if not is_follow_up(said[at])), 0)
    subject = said[first]
    if re.search(_PERSON, query):
        named = (name for before in said[first:] for name in re.findall(_NAME, before))
        subject = " ".join(dict.fromkeys(named)) or subject
    return f"{_shortened(subject)} {query.strip()}"


def is_follow_up(query: str) -> bool:
    """Whether a query cannot stand alone: its form is that of one that points to what was said."""
    return leaning(query) > 0


def leaning(query: str) -> float:
    """How much the form of a query is that of one that cannot stand alone, from 0 on; a logit.

    Without bounds below where it has no form: mere keywords, and what is too long, stand alone.
    """
    found = features(query)
    weights = _weights()
    return sum(weights.get(each, 0) for each in found) - SURE if found else -math.inf


def features(query: str) -> set[str]:
    """What is true of the form of a query; nothing of mere keywords and of what is too long."""
    if len(query) > MOST_READ or not _has_function_word(query):
        return set()
    return set(_of_characters(query) if is_spaceless(query) else _of_words(query))


def _has_function_word(query: str) -> bool:
    if is_spaceless(query):
        return not FUNCTION_CHARACTERS.isdisjoint(query)
    return not FUNCTION_WORDS.isdisjoint(re.findall(_WORD, query.casefold()))


def _of_words(query: str) -> Iterator[str]:
    plain = query.casefold() if query.isupper() or query.istitle() else re.sub(_CLITIC, "", query)
    found = list(re.finditer(_WORD, plain))
    shapes = [_shape(word, plain) for word in found]
    yield from _runs(shapes)
    names = shapes.count("N")
    general, topical = (sum(shape[0] == kind for shape in shapes) for kind in "~-")
    yield f"content {min(names + general + topical, 6)}"
    yield f"names {min(names, 3)}"
    yield f"general {min(general, 3)}"
    yield f"topical {min(topical, 4)}"
    yield f"topical or named {min(topical + names, 4)}"
    yield f"topical {min(topical, 2)} named {min(names, 2)} general {min(general, 2)}"
    for at, word in enumerate(shapes):
        before = shapes[:at]
        if word in _PRONOUNS:
            others = sum(shape[0] in "-~" for shape in before)
            kind = "thing" if word in _THINGS else "person"
            if kind == "thing" and _CLAUSAL & set(shapes[at + 1 : at + 4]):
                kind = "clause"
            clause = " of a clause" if shapes[0] in _SUBORDINATE else ""
            yield f"{kind}{clause} after {min(before.count('N'), 1)} {min(others, 2)}"
        elif word in _GERMAN_POINTING and "N" not in shapes[at + 1 : at + 4]:
            yield "no noun after a determiner"


def _shape(word: re.Match[str], query: str) -> str:
    """A function word; else a number, what looks like a name, or how a word ends."""
    written, folded = word.group(), word.group().casefold()
    is_within = re.search(_WITHIN, query[: word.start()]) is not None
    if is_within and written in _POLITE:
        return "you"
    if (is_within and written[0].isupper()) or (written.isupper() and len(written) > 1):
        return "N"  # "IT" is no "it", "Will" no "will"
    if folded in FUNCTION_WORDS:
        return folded
    if written.isdigit():
        return "#"
    kind = "~" if _is_general(folded) else "-"
    return kind + next((end for end in _ENDINGS if folded.endswith(end)), "")


def _is_general(word: str) -> bool:
    cut = range(max(len(word) - LONGEST_ENDING, SHORTEST_STEM), len(word))
    return word in GENERAL_WORDS or any(word[:end] in GENERAL_WORDS for end in cut)


def _of_characters(query: str) -> Iterator[str]:
    """The same where words are not set apart: characters, and how long what says something is."""
    said = re.findall(_CHARACTER, query)
    kinds = _kinds(said)
    shapes: list[str] = []
    for kind, run in groupby(zip(kinds, said, strict=True), itemgetter(0)):
        characters = [character for _, character in run]
        shapes += characters if not kind else [f"{kind}{min(len(characters), 4)}"]
    yield from _runs(shapes)
    topical = kinds.count("-")
    content = topical + kinds.count("~")
    yield f"characters {min(content, 7)}"
    yield f"topical {min(topical, 5)}"
    yield f"topical {min(topical, 3)} of {min(len(said) // 3, 4)}"
    yield f"length {min(len(said) // 2, 8)}"
    for name, members in _CLASSES.items():
        at = next((at for at, each in enumerate(said) if each in members), None)
        if at is not None:
            before = at - kinds[:at].count("")
            yield f"{name} after {min(before, 3)}"
            yield f"{name} before {min(content - before, 3)}"


def _kinds(said: Sequence[str]) -> list[str]:
    """What each character is: "" for a function word, "~" of a general word, else "-"."""
    kinds = ["" if each in FUNCTION_CHARACTERS else "-" for each in said]
    at = 0
    while at < len(said):
        lengths = range(LONGEST_WORD, 0, -1)
        run = next((n for n in lengths if "".join(said[at : at + n]) in GENERAL_CHARACTERS), 0)
        kinds[at : at + run] = [kind and "~" for kind in kinds[at : at + run]]
        at += run or 1
    return kinds


def _runs(shapes: Sequence[str]) -> Iterator[str]:
    whole = ["^", *shapes, "$"]
    for length in range(1, LONGEST_RUN + 1):
        for at in range(len(whole) - length + 1):
            yield " ".join(whole[at : at + length])


@cache
def _weights() -> dict[str, float]:
    text = Path(__file__).with_name(WEIGHTS_FILE).read_text(encoding="utf-8")
    weights: dict[str, float] = json.loads(text)
    return weights


def _shortened(text: str) -> str:
    text = " ".join(text.split()).rstrip("?.! \uff1f\u3002\uff01")
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0]

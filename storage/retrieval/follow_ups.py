"""Detects follow-ups by their form, and completes them.

"And its limits?" finds nothing on its own, so it is searched together with the query before it. A
complete question stays as it is: words of an earlier question would only mislead.

A logistic regression decides by the form of a question in English, German or Chinese. Its features
are the function words and their neighbours (every other word is reduced to a shape), how many of
those bring a topic, and what precedes its pronouns. The weights were fitted by
`benchmarks/follow_up_weights.py` of commit 0703608e. If the form leaves room for doubt, as in "Does
a trailer cost extra?", both versions are searched, and the completed one is used if its answers are
much more certain (`Completion`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from storage.models import Identity, SearchFilter
from storage.retrieval.confidence import Confidence
from storage.retrieval.query_signals import (
    FUNCTION_CHARACTERS,
    FUNCTION_WORDS,
    GENERAL_CHARACTERS,
    GENERAL_WORDS,
)
from storage.retrieval.search import SearchEngine
from storage.tokenize import is_spaceless, tokenize

WEIGHTS_FILE = "follow_up_weights.json"  # the weight of each feature, in a file next to this module
# The score above which a query is completed, since completing a complete one does more harm.
SURE = 0.5
LONGEST = 300  # maximum characters to take from the earlier query
MOST_READ = 200  # maximum characters of a query to examine; a longer one is complete
LONGEST_RUN = 3  # maximum neighbouring words that form one feature
LONGEST_ENDING = 3  # maximum letters of an ending of a general word
SHORTEST_STEM = 3  # minimum letters of its stem
LONGEST_WORD = 3  # maximum characters of a general word in Chinese

_PRONOUNS = frozenset(
    """
    it its they them their theirs he him his she her hers er ihn ihm ihrem ihren ihrer sein seine
    seinem seinen seiner sie es ihr ihre ihnen dessen deren
    """.split()  # noqa: SIM905  # words read best as text
)
_THINGS = frozenset(["es", "it", "its"])
# Words that begin the clause that "it" refers to: "is it true that".
_CLAUSAL = frozenset(["dass", "if", "ob", "that"])

# Words within a sentence that address the other person.
_POLITE = frozenset(["Ihnen", "Ihr", "Ihre", "Ihrem", "Ihren", "Ihrer", "Sie"])
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
_WITHIN = r"[\w,] $"  # what precedes a word within a sentence
_CLITIC = r"['\u2019][^\W\d_]+"
_CHARACTER = r"[a-zA-Z0-9]+|\w"
_PERSON = r"(?i)\b(?:he|him|his|she|her|hers)\b"
_NAME = (
    r"(?<=[\w,] )(?!(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?\b|(?:Janu|Febru)ary\b|March\b"
    r"|April\b|May\b|June\b|July\b|August\b|(?:Septem|Octo|Novem|Decem)ber\b)"
    r"[A-ZÄÖÜ]\w*[a-z]\w*"
)


def completed(query: str, earlier: Sequence[str]) -> str:
    """Completes a query with the one before it, of the same session, that it depends on.

    That is the latest complete query, or else the first of all. For a query about a person only
    names are taken, also from follow-ups since then: other words were measured to mislead.
    """
    asked = [each for each in earlier if tokenize(each)]
    if not asked:
        return query
    # The first cannot depend on an earlier one, whatever its form.
    first = next((at for at in reversed(range(len(asked))) if not is_follow_up(asked[at])), 0)
    subject = asked[first]
    if re.search(_PERSON, query):
        named = (name for before in asked[first:] for name in re.findall(_NAME, before))
        subject = " ".join(dict.fromkeys(named)) or subject
    subject = " ".join(subject.split()).rstrip("?.! \uff1f\u3002\uff01")
    if len(subject) > LONGEST:
        subject = subject[:LONGEST].rsplit(" ", 1)[0]
    return f"{subject} {query.strip()}"


def is_follow_up(query: str) -> bool:
    """Returns whether a query's form shows that it depends on an earlier one."""
    return leaning(query) > 0


def leaning(query: str) -> float:
    """Returns a logit, above 0 if a query's form shows that it depends on an earlier one.

    It is minus infinity for mere keywords and for long queries, which are always complete.
    """
    found = features(query)
    weights = _weights()
    return sum(weights.get(each, 0) for each in found) - SURE if found else -math.inf


def features(query: str) -> set[str]:
    """Returns the features of a query's form; none for mere keywords and long queries."""
    if len(query) > MOST_READ:
        return set()
    if is_spaceless(query):
        return set() if FUNCTION_CHARACTERS.isdisjoint(query) else set(_of_characters(query))
    words = re.findall(_WORD, query.casefold())
    return set() if FUNCTION_WORDS.isdisjoint(words) else set(_of_words(query))


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
    """Returns a function word, or the shape of another: number, name, or ending."""
    written, folded = word.group(), word.group().casefold()
    is_within = re.search(_WITHIN, query[: word.start()]) is not None
    if is_within and written in _POLITE:
        return "you"
    if (is_within and written[0].isupper()) or (written.isupper() and len(written) > 1):
        return "N"  # "IT" is not "it", "Will" is not "will"
    if folded in FUNCTION_WORDS:
        return folded
    if written.isdigit():
        return "#"
    stems = range(max(len(folded) - LONGEST_ENDING, SHORTEST_STEM), len(folded))
    is_general = folded in GENERAL_WORDS or any(folded[:end] in GENERAL_WORDS for end in stems)
    kind = "~" if is_general else "-"
    return kind + next((end for end in _ENDINGS if folded.endswith(end)), "")


def _of_characters(query: str) -> Iterator[str]:
    """Yields the features of text without spaces: characters, and the lengths of content runs."""
    characters = re.findall(_CHARACTER, query)
    kinds = _kinds(characters)
    shapes: list[str] = []
    for kind, run in groupby(zip(kinds, characters, strict=True), itemgetter(0)):
        members = [character for _, character in run]
        shapes += members if not kind else [f"{kind}{min(len(members), 4)}"]
    yield from _runs(shapes)
    topical = kinds.count("-")
    content = topical + kinds.count("~")
    yield f"characters {min(content, 7)}"
    yield f"topical {min(topical, 5)}"
    yield f"topical {min(topical, 3)} of {min(len(characters) // 3, 4)}"
    yield f"length {min(len(characters) // 2, 8)}"
    for name, initials in _CLASSES.items():
        at = next((at for at, each in enumerate(characters) if each in initials), None)
        if at is not None:
            before = at - kinds[:at].count("")
            yield f"{name} after {min(before, 3)}"
            yield f"{name} before {min(content - before, 3)}"


def _kinds(characters: Sequence[str]) -> list[str]:
    """Returns each character's kind: "" in a function word, "~" in a general word, else "-"."""
    kinds = ["" if each in FUNCTION_CHARACTERS else "-" for each in characters]
    at = 0
    while at < len(characters):
        lengths = range(LONGEST_WORD, 0, -1)
        run = next(
            (n for n in lengths if "".join(characters[at : at + n]) in GENERAL_CHARACTERS), 0
        )
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


CERTAINTY = 6.0  # the weight of the difference in probability, relative to the form
COMPARED = 3  # the hits that are read; each takes 12 ms of a processor


def may_lean(query: str) -> bool:
    """Returns whether a query is a follow-up by its form, or could be by its results."""
    return leaning(query) > -CERTAINTY


@dataclass(frozen=True, slots=True)
class Completion:
    """Compares the results of a query and its completion; its methods block."""

    engine: SearchEngine
    confidence: Confidence

    def is_surer(
        self, identity: Identity, query: str, completed: str, criteria: SearchFilter, sure: float
    ) -> bool:
        """Returns whether the completed query answers so much better that it should be used.

        It never does in languages other than English, where this was measured to mislead. `sure` is
        the best probability among the results of the query itself.
        """
        form = leaning(query)
        if form + CERTAINTY * (1 - sure) <= 0:
            return False  # no probability is high enough
        hits = self.engine.search(identity, completed, criteria, COMPARED).hits
        evidence = self.confidence.evidence(query, hits)
        if any(each.weights_key[0] != "English" for each in evidence):
            return False
        likely = max(self.confidence.rate(query, hits, evidence), default=0.0)
        return form + CERTAINTY * (likely - sure) > 0

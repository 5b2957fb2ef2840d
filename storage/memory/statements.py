"""Statements in conversations: sentences with a decision, an open task, a fact or a name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from storage.memory.cues import (
    Kind,
    is_done,
    is_layout,
    is_offer,
    is_question,
    is_request,
    is_specific,
    kind_of,
    without_cues,
    without_marks,
)
from storage.reading.chunk import sentences
from storage.tokenize import rough_terms

_SHORTEST = 20  # characters of a sentence that states nothing, but is the user's
LOWER_START = re.compile(r"(?<=\w\w[.!?])\s+(?=[^\W\d_])")
FENCED = re.compile(r"^\s*```.*?(?:^\s*```\s*$|\Z)", re.MULTILINE | re.DOTALL)
_LEAST = 12  # characters of a sentence that is only specific
_BARE = 70  # characters below which a decision is shown with what the assistant replied
_SAME = 0.6  # share of the shorter statement's words that two statements about one thing share


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of a conversation."""

    session: str
    source: int  # the seq of the conversation
    speaker: str
    time: float  # Unix seconds
    content: str

    @property
    def by_user(self) -> bool:
        """Whether the user said it."""
        return self.speaker == "User"


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that states something."""

    text: str
    passage: Passage
    kind: Kind | None  # None if it only says that something was finished
    done: bool  # whether it says that something was finished
    terms: frozenset[str]  # what it is about
    reply: str = ""  # how the assistant put it, of a short decision of the user


def statements_in(passage: Passage, *, others: bool, answer: str = "") -> Iterator[Statement]:
    """Yields what states something, and with `others` also what is specific or by the user.

    `answer` is what the assistant answered: "2 sounds good" says little without it.
    """
    in_code = False
    for sentence in _sentences(passage):
        if sentence.startswith("```"):
            in_code = not in_code
        elif not in_code:
            kind = kind_of(sentence, by_user=passage.by_user)
            done = kind in {None, Kind.FOUND} and is_done(sentence)
            asks = is_request(sentence) if passage.by_user else is_question(sentence)
            if kind is None and others and not asks:
                worth = passage.by_user and len(sentence) >= _SHORTEST
                worth = worth or (is_specific(sentence) and len(without_marks(sentence)) > _LEAST)
                said = passage.by_user or not (is_offer(sentence) or is_layout(sentence))
                kind = Kind.OTHER if worth and said else None
            if kind is not None or done:
                about = sentence if kind is Kind.OTHER else without_cues(sentence)
                is_bare = kind is Kind.DECISION and passage.by_user and len(sentence) < _BARE
                reply = _opening(answer) if is_bare else ""
                yield Statement(sentence, passage, kind, done, frozenset(rough_terms(about)), reply)


def _sentences(passage: Passage) -> Iterator[str]:
    """Yields sentences; a typed question is separated from what it follows in lower case."""
    for sentence in sentences(passage.content):
        if passage.by_user and is_question(sentence):
            yield from LOWER_START.split(sentence)
        else:
            yield sentence


def _opening(answer: str) -> str:
    """Returns the first sentence of an answer that says more than yes."""
    found = (without_marks(each) for each in sentences(answer[:600]))
    return next((each for each in found if len(each) >= _SHORTEST), "")


def without_superseded(said: Sequence[Statement]) -> list[Statement]:
    """Returns the statements that nothing newer replaces, repeats or reports as done.

    Of one turn, what the user said counts more than how the assistant repeats it.
    """
    kept: list[Statement] = []
    settled: dict[Kind, list[Statement]] = {kind: [] for kind in Kind}
    for each in sorted(said, key=lambda each: (-each.passage.time, not each.passage.by_user)):
        if each.done:
            settled[Kind.OPEN].append(each)
        if each.kind is None:
            continue
        same = settled[each.kind]
        if not any(_replaces(other, each) for other in same):
            kept.append(each)
            same.append(each)
    return kept


def _replaces(newer: Statement, older: Statement) -> bool:
    some, other = newer.passage, older.passage
    if older.kind is Kind.OTHER and (some.by_user != other.by_user or some.time == other.time):
        return False  # an answer to it, or the next line of one list
    return _are_about_one(newer.terms, older.terms)


def _are_about_one(some: frozenset[str], others: frozenset[str]) -> bool:
    shared = len(some & others)
    return shared > 1 and shared >= _SAME * min(len(some), len(others))

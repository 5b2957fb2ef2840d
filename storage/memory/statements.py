"""Statements in conversations: sentences with a decision, an open task, a fact or a name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from storage.memory.cues import Kind, is_done, is_question, is_specific, kind_of, without_cues
from storage.reading.chunk import sentences
from storage.tokenize import tokenize

_SHORTEST = 20  # characters of a sentence that states nothing, but is the user's
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


def statements_in(passage: Passage, *, others: bool) -> Iterator[Statement]:
    """Yields what states something, and with `others` also what is specific or by the user."""
    in_code = False
    for sentence in sentences(passage.content):
        if sentence.startswith("```"):
            in_code = not in_code
        elif not in_code:
            kind = kind_of(sentence, by_user=passage.by_user)
            done = kind is None and is_done(sentence)
            if kind is None and others and not is_question(sentence):
                worth = passage.by_user and len(sentence) >= _SHORTEST
                kind = Kind.OTHER if worth or is_specific(sentence) else None
            if kind is not None or done:
                about = sentence if kind is Kind.OTHER else without_cues(sentence)
                yield Statement(sentence, passage, kind, done, frozenset(tokenize(about)))


def without_superseded(said: Sequence[Statement]) -> list[Statement]:
    """Returns the statements that nothing newer replaces, repeats or reports as done.

    Of one turn, what the user said counts more than how the assistant repeats it.
    """
    kept: list[Statement] = []
    settled: dict[Kind, list[Statement]] = {Kind.OPEN: [], Kind.DECISION: [], Kind.PERSON: []}
    for each in sorted(said, key=lambda each: (-each.passage.time, not each.passage.by_user)):
        if each.done:
            settled[Kind.OPEN].append(each)
        if each.kind is None:
            continue
        same = settled.get(each.kind, [])
        if not any(_are_about_one(other.terms, each.terms) for other in same):
            kept.append(each)
            same.append(each)
    return kept


def _are_about_one(some: frozenset[str], others: frozenset[str]) -> bool:
    shared = len(some & others)
    return shared > 1 and shared >= _SAME * min(len(some), len(others))

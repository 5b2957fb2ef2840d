"""Reads the conversations of a project turn by turn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby, islice
from operator import itemgetter

from storage.database import View
from storage.memory.captured import newest_passages, seconds
from storage.memory.cues import is_question, is_request, is_task
from storage.memory.statements import FENCED, LOWER_START
from storage.reading.chunk import sentences
from storage.retrieval.query_signals import FUNCTION_WORDS, GENERAL_WORDS
from storage.tokenize import rough_terms, rough_words

_READ_CHARACTERS = 4_000  # of a turn, for its words


@dataclass(frozen=True)
class Turn:
    """A prompt and its answer; either may be empty."""

    session: str
    source: int  # the seq of the conversation
    time: float  # Unix seconds
    prompt: str
    answer: str

    @cached_property
    def text(self) -> str:
        """All of it in lower case."""
        return f"{self.prompt}\n{self.answer}".lower()

    @cached_property
    def terms(self) -> frozenset[str]:
        """Its words, shortened."""
        return frozenset(rough_terms(self.text[:_READ_CHARACTERS]))

    @cached_property
    def prompt_terms(self) -> frozenset[str]:
        """The words of the prompt, shortened."""
        return frozenset(rough_terms(self.prompt[:_READ_CHARACTERS]))

    @cached_property
    def changes(self) -> bool:
        """Whether it speaks of a change."""
        return _CHANGE.search(self.text) is not None

    @cached_property
    def first_terms(self) -> frozenset[str]:
        """The first words of the prompt, shortened."""
        return frozenset(islice(rough_terms(self.prompt[:_READ_CHARACTERS]), _NAMED))

    @cached_property
    def topics(self) -> frozenset[str]:
        """The words that may be its topics, shortened."""
        return _topics_in(self.text)

    @cached_property
    def states(self) -> bool:
        """Whether the prompt neither asks nor wants something to be done once."""
        parts = prose_in(self.prompt[:_READ_CHARACTERS], typed=True)
        return any(not (is_request(each) or is_task(each)) for each in parts)

    def share_of(self, before: Turn) -> float:
        """Returns how much it is likely to be about what the turn before it is about."""
        if is_question(before.answer.rstrip()):
            return 0.95  # it answers
        if not _topics_in(self.prompt):
            return 0.85
        opening = next(iter(sentences(self.prompt[:300])), "")
        return 0.3 if is_request(opening) or is_task(opening) else 0.7

    def replaces(self, older: Turn) -> bool:
        """Returns whether a later session states something else about what an older turn states."""
        is_later = self.time > older.time and self.session != older.session
        if not (is_later and self.states and older.states):
            return False
        repeated = self._weigh(older.first_terms & self.prompt_terms)
        enough = _CHANGED_PROMPT if self.changes else _SAME_PROMPT
        if repeated >= max(1.0, enough * older._weigh(older.first_terms)):
            return True
        shared = self._weigh(self.terms & older.terms)
        least = min(self._weigh(self.terms), older._weigh(older.terms))
        return shared >= max(_FEWEST, _SAME * least)

    def _weigh(self, terms: frozenset[str]) -> float:
        return len(terms) - (1 - _OF_GENERAL) * len(terms - self.topics)


_CHANGE = re.compile(
    r"instead|no longer|get rid|rather than|replaced|switch|swap|migrat|converted|ported"
    r"|moves? over|stattdessen|ersetz|umgestellt|remplac|à la place|en vez|reemplaz"
    r"|改[成用为]|换成|ではなく"
)
"""Signs that a turn changes an earlier decision."""

_NAMED = 6  # words of a prompt
_FEWEST = 2.0  # weight of words that two turns about one thing share
_SAME = 0.4  # share of the shorter turn's words that they share
_SAME_PROMPT = 0.7  # share of the older prompt's words that suffices
_CHANGED_PROMPT = 0.45  # the same for a turn that speaks of a change
_OF_GENERAL = 0.3  # weight of a word such as "use" against one that may be a topic


@lru_cache(maxsize=1 << 13)
def is_topical(word: str) -> bool:
    """Returns whether a word in lower case may be a topic."""
    if word in FUNCTION_WORDS:
        return False
    stems = (word[:end] for end in range(max(len(word) - 3, 4), len(word)))
    return word not in GENERAL_WORDS and GENERAL_WORDS.isdisjoint(stems)


def _topics_in(text: str) -> frozenset[str]:
    words = filter(is_topical, rough_words(text[:_READ_CHARACTERS]))
    return frozenset(term for word in words for term in rough_terms(word))


def prose_in(text: str, *, typed: bool = False) -> list[str]:
    """Returns the sentences of a text that are not in a code block.

    What people type often has sentences that begin in lower case.
    """
    found = sentences(FENCED.sub("", text))
    return [part for each in found for part in LOWER_START.split(each)] if typed else found


def read_turns(view: View, project: str, but: str, most: int) -> list[Turn]:
    """Returns the turns of a project's newest passages, in order within each session.

    The session `but` is left out.
    """
    found = newest_passages(view, project, but)
    rows = view.rows(f"{found.sql} ORDER BY x.seq, c.seq", (*found.values, most, 0))
    return [
        turn
        for (session, seq), own in groupby(map(tuple, rows), itemgetter(0, 1))
        for turn in _turns(session, seq, own)
    ]


def _turns(session: str, seq: int, passages: Iterator[tuple[str, int, str, str]]) -> Iterator[Turn]:
    said: tuple[list[str], list[str]] = ([], [])
    moment = ""
    for *_, heading, content in passages:
        speaker, _, at = heading.rpartition(", ")
        by_user = speaker == "User"
        if by_user and said[1]:
            yield Turn(session, seq, seconds(moment), *map("\n".join, said))
            said = ([], [])
        said[not by_user].append(content)
        moment = at
    yield Turn(session, seq, seconds(moment), *map("\n".join, said))

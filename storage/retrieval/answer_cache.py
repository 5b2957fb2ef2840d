"""Recent answers, which are given again while nothing has changed."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from storage.retrieval.query_text import QueryText

__all__ = ["LIFE_SECONDS", "MOST_ANSWERS", "AnswerCache"]

MOST_ANSWERS = 256

LIFE_SECONDS = 300.0
"""How long an answer is given again."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Answer(Generic[T]):
    """An answer, to which query, and when."""

    text: QueryText
    result: T
    time: float


class AnswerCache(Generic[T]):
    """The latest answers of one library, which are given again while nothing has changed.

    An answer is stored under everything that it depends on, the version of the user's library among
    it, so that a change anywhere needs no invalidation: nobody asks under the old key again. A
    query that differs only in case, spaces, punctuation and words that say nothing ("the", "is")
    gets it too. Where words alone decide, so does one in other words, if the difference can find
    nothing:

    - at least .6 of all terms are in both (Jaccard), and those stand in the same order;
    - the other terms are in no chunk of the user, and no entry of the session has any of the terms;
    - of the words that are no terms only some that say nothing differ;
    - both have the same numbers, negations and dates, and are of scripts of one kind.

    Where meaning counts, every other word may change the order: "kitten" finds the cat, though
    nothing stored holds the word.

    Args:
        clock: Returns the time in seconds, from any start.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turn = threading.Lock()
        self._answers: OrderedDict[tuple[Hashable, str], _Answer[T]] = OrderedDict()

    def find(
        self,
        key: Hashable,
        text: QueryText,
        finds_nothing: Callable[[Mapping[str, str]], bool],
    ) -> tuple[T, str] | None:
        """Returns the answer to the same query or to another wording of it, and that query.

        Args:
            key: All that the answer depends on beside the query.
            text: The query.
            finds_nothing: Whether terms, each given with its word, can find nothing: called with
                those that only one of two queries has.
        """
        with self._turn:
            self._drop_old()
            same = self._answers.get((key, text.query))
            others = [each for (under, _), each in self._answers.items() if under == key]
        if same is not None:
            return same.result, same.text.query
        for answer in reversed(others):
            difference = answer.text.difference(text)
            if difference is None:
                continue
            if answer.text.said == text.said or finds_nothing(difference):
                return answer.result, answer.text.query
        return None

    def add(self, key: Hashable, text: QueryText, result: T) -> None:
        """Stores an answer for `LIFE_SECONDS`."""
        with self._turn:
            self._answers[key, text.query] = _Answer(text, result, self._clock())
            self._answers.move_to_end((key, text.query))
            if len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)

    def _drop_old(self) -> None:
        oldest = self._clock() - LIFE_SECONDS
        while self._answers and next(iter(self._answers.values())).time < oldest:
            self._answers.popitem(last=False)

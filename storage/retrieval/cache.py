"""Recent answers, which are given again while nothing has changed that could alter them.

An answer is kept under everything that it depends on, the version of the user's library among it,
so that a change anywhere needs no invalidation: nobody asks under the old key again. A query that
differs only in case, spaces, punctuation and words that say nothing ("the", "is") takes it over.
Where words alone decide, so does one in other words, if the difference can find nothing:

- at least .6 of all terms are in both (Jaccard), and those stand in the same order;
- the other terms are in no chunk of the user, and no entry of the session has any of the terms;
- of the words that are no terms only some that say nothing differ;
- both have the same numbers, negations and dates, and are of scripts of one kind.

Where meaning counts, every other word may change the order: "kitten" finds the cat, though nothing
holds the word.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from storage.retrieval.inquiry import Findings
from storage.retrieval.query_text import QueryText

__all__ = ["AnswerCache"]

MOST_ANSWERS = 256

LIFE_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer, to what, and when."""

    text: QueryText
    findings: Findings
    time: float


class AnswerCache:
    """The latest answers of one library, in memory.

    Args:
        clock: Gives the time in seconds, from anywhere.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turn = threading.Lock()
        self._answers: OrderedDict[tuple[Hashable, str], _Answer] = OrderedDict()
        self._under: dict[Hashable, dict[str, _Answer]] = {}

    def find(
        self,
        key: Hashable,
        text: QueryText,
        finds_nothing: Callable[[Mapping[str, str]], bool],
    ) -> tuple[Findings, str] | None:
        """An answer to the same query, or to another wording of it.

        Args:
            key: All that the answer depends on beside the query.
            text: The query.
            finds_nothing: Whether terms, each given with its word, can find nothing: asked of those
                that only one of two queries has.

        Returns:
            The answer, and the query that it was given to.
        """
        with self._turn:
            self._drop_old()
            answers = self._under.get(key, {})
            same, others = answers.get(text.query), list(answers.values())
        if same is not None:
            return same.findings, same.text.query
        for answer in reversed(others):
            difference = answer.text.difference(text)
            if difference is None:
                continue
            if answer.text.said == text.said or finds_nothing(difference):
                return answer.findings, answer.text.query
        return None

    def keep(self, key: Hashable, text: QueryText, findings: Findings) -> None:
        """Keeps an answer for a while."""
        with self._turn:
            answer = _Answer(text, findings, self._clock())
            self._answers[key, text.query] = answer
            self._answers.move_to_end((key, text.query))
            self._under.setdefault(key, {})[text.query] = answer
            if len(self._answers) > MOST_ANSWERS:
                self._drop_oldest()

    def _drop_old(self) -> None:
        oldest = self._clock() - LIFE_SECONDS
        while self._answers and next(iter(self._answers.values())).time < oldest:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        (key, query), _ = self._answers.popitem(last=False)
        del self._under[key][query]
        if not self._under[key]:
            del self._under[key]

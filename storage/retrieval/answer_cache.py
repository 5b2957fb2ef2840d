"""Caches recent answers while nothing has changed."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from storage.retrieval.sameness import wording

MOST_ANSWERS = 256
LIFE_SECONDS = 300.0  # seconds for which an answer is cached
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Answer(Generic[T]):
    """A cached answer."""

    query: str
    result: T
    time: float


class AnswerCache(Generic[T]):
    """The latest answers of one library, reused while nothing has changed.

    An answer is stored under everything it depends on, including the version of the user's library.
    So a change needs no invalidation: the old key is never requested again. A query that differs
    only in case, spaces, punctuation and stop words ("the", "is") gets the same answer.

    Args:
        clock: Returns the time in seconds, from any start.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._turn = threading.Lock()
        self._answers: OrderedDict[Hashable, _Answer[T]] = OrderedDict()

    def find(self, key: Hashable, query: str) -> tuple[T, str] | None:
        """Returns the cached answer to a query or another wording of it, and that query."""
        with self._turn:
            self._drop_old()
            found = self._answers.get((key, wording(query)))
        return None if found is None else (found.result, found.query)

    def add(self, key: Hashable, query: str, result: T) -> None:
        """Stores an answer for `LIFE_SECONDS`."""
        whole = key, wording(query)
        with self._turn:
            self._answers[whole] = _Answer(query, result, self._clock())
            self._answers.move_to_end(whole)
            if len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)

    def _drop_old(self) -> None:
        oldest = self._clock() - LIFE_SECONDS
        while self._answers and next(iter(self._answers.values())).time < oldest:
            self._answers.popitem(last=False)

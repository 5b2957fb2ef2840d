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

import re
import threading
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from storage.index.lexical import MAX_QUERY_TERMS
from storage.retrieval.dates import named_dates
from storage.retrieval.inquiry import Findings
from storage.retrieval.wording import decisive
from storage.tokenize import STOP_WORDS, is_spaceless, terms_of, tokenize

__all__ = ["AnswerCache", "Wording"]

MOST_ANSWERS = 256

LIFE_SECONDS = 300.0

SIMILAR = 0.6
"""Share of all their terms that two queries have in common at least (Jaccard)."""

_EMPTY_WORDS = frozenset(["a", "an", "the", "is", "are", "am", "do", "does", "of", "there"])
_SILENT = re.compile(r"[\s.,;:!?()\"\u3001\u3002]+")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")


class Wording:
    """A query as it is compared with others.

    Args:
        query: As it is put to the index.
    """

    def __init__(self, query: str) -> None:
        self.query = query

    @cached_property
    def terms(self) -> list[str]:
        """Its terms, in its order."""
        return tokenize(self.query)

    @cached_property
    def different(self) -> frozenset[str]:
        """Its terms, each once."""
        return frozenset(self.terms)

    @cached_property
    def said(self) -> list[str]:
        """All that it says, in its order: everything but case, spaces, punctuation, empty words."""
        text = unicodedata.normalize("NFKC", self.query).casefold()
        return [word for word in _SILENT.split(text) if word and word not in _EMPTY_WORDS]

    @cached_property
    def form(self) -> tuple[Hashable, ...]:
        """What has to be the same in two wordings of one question."""
        words = (word.casefold().replace("\u2019", "'") for word in _WORD.findall(self.query))
        small = tuple(
            word
            for word in words
            if word.replace("'", "") in STOP_WORDS and word not in _EMPTY_WORDS
        )
        return small, decisive(self.query), named_dates(self.query), is_spaceless(self.query)

    def difference(self, other: Wording) -> dict[str, str] | None:
        """The terms that stand in one of two wordings of one question, each with its word.

        None if they are of two questions.
        """
        mine, theirs = self.different, other.different
        common = mine & theirs
        if len(common) < SIMILAR * len(mine | theirs) or not common or self.form != other.form:
            return None
        if max(len(self.terms), len(other.terms)) > MAX_QUERY_TERMS:
            return None
        if _only(self.terms, common) != _only(other.terms, common):
            return None
        written = terms_of(self.query) | terms_of(other.query)
        return {term: written[term] for term in mine ^ theirs}


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer, to what, and when."""

    wording: Wording
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
        wording: Wording,
        finds_nothing: Callable[[Mapping[str, str]], bool],
    ) -> tuple[Findings, str] | None:
        """An answer to the same query, or to another wording of it.

        Args:
            key: All that the answer depends on beside the query.
            wording: The query.
            finds_nothing: Whether terms, each given with its word, can find nothing: asked of those
                that only one of two wordings has.

        Returns:
            The answer, and the query that it was given to.
        """
        with self._turn:
            self._drop_old()
            answers = self._under.get(key, {})
            same, others = answers.get(wording.query), list(answers.values())
        if same is not None:
            return same.findings, same.wording.query
        for answer in reversed(others):
            difference = answer.wording.difference(wording)
            if difference is None:
                continue
            if answer.wording.said == wording.said or finds_nothing(difference):
                return answer.findings, answer.wording.query
        return None

    def keep(self, key: Hashable, wording: Wording, findings: Findings) -> None:
        """Keeps an answer for a while."""
        with self._turn:
            answer = _Answer(wording, findings, self._clock())
            self._answers[key, wording.query] = answer
            self._answers.move_to_end((key, wording.query))
            self._under.setdefault(key, {})[wording.query] = answer
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


def _only(terms: Sequence[str], some: AbstractSet[str]) -> list[str]:
    return [term for term in terms if term in some]

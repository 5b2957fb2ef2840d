"""Fits how sure a hit is: the weights of `storage.retrieval.confidence`.

    python -m benchmarks.calibration --xquad FILE ... --conversations FILE --data DIR ...
        [--embedder minilm]

The libraries and questions are those of `benchmarks.confidence`, which tells where FILE and DIR
come from; every other question is used. What is fitted is whether each hit shown answers, by a
logistic regression for each kind of evidence that may be missing; every library counts the same.
Then the bounds are searched outside which hits in English need not be read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.confidence import SHOWN, Asked, Shelf, answering, asked_for, stocked
from storage.models import Identity, SearchFilter
from storage.retrieval.confidence import MULTILINGUAL, Evidence, Known, Weights, least_shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.index.embedders.base import Embedder

LOST = 1.8
"""What an answer counts where it is read: it must not be lost."""

HARD = frozenset({"near", "attribute", "adversarial"})
"""Kinds of questions that ask for what a passage on that very thing leaves out, or name the wrong
speaker."""

HARD_COUNTS = 0.5
"""What they count: nothing here tells them from those that are answered, which they must not
cost."""

MISSING = -5.0
"""What missing names weigh in English. It is set: the few answers that tell of a name in other
words count so much in a regression that others' names would get through."""

RIDGE = 1e-2
STEPS = 30

LEAST, MOST = (0.0, 0.03, 0.05, 0.07, 0.1), (0.8, 0.9, 0.95, 1.0)
"""Bounds to try for `storage.retrieval.confidence.UNDECIDED`."""


class Judged(NamedTuple):
    """A question, what speaks for each hit, and whether it answers."""

    asked: Asked
    evidence: Sequence[Evidence]
    right: Sequence[bool]

    def counted(self) -> Iterator[tuple[Evidence, bool, float]]:
        """Each hit, and what it counts.

        Of a question that has an answer, the others are left out: they may answer as well.
        """
        counts = HARD_COUNTS if self.asked.kind in HARD else 1.0
        for evidence, right in zip(self.evidence, self.right, strict=True):
            if right or not self.asked.answers:
                yield evidence, right, counts


def main() -> None:
    """Prints the weights, and the bounds."""
    embedder, shelves = asked_for("Fits how sure a hit is.")
    found: dict[str, list[Judged]] = defaultdict(list)
    for shelf in shelves:
        found[shelf.name] += judged(shelf, embedder)
    table = {}
    for known in MULTILINGUAL:
        weights = fit(list(found.values()), known)
        print(known, "nothing" if weights is None else weights.round(2))
        if weights is not None:
            table[known] = Weights(*map(float, weights))
    print("UNDECIDED", bounds_of(list(chain(*found.values())), table))


def judged(shelf: Shelf, embedder: Embedder) -> Iterator[Judged]:
    """Every other question, with all of its hits read."""
    with stocked(shelf, embedder) as library:
        for asked in shelf.questions[::2]:
            found = library.engine.search(Identity(), asked.text, SearchFilter(), SHOWN)
            evidence = library.confidence.evidence(asked.text, found.hits, reads_all=True)
            yield Judged(asked, evidence, answering(asked, found))


def bounds_of(
    questions: Sequence[Judged], table: Mapping[Known, Weights]
) -> tuple[tuple[float, float], tuple[int, int, int]]:
    """The bounds with the fewest hits read and no more mistakes than if all are, and its counts."""
    tried = {each: mistakes(questions, table, each) for each in product(LEAST, MOST)}
    lost, wrong, _ = mistakes(questions, table, (0.0, 1.0))
    good = [each for each, made in tried.items() if made[0] <= lost and made[1] <= wrong]
    best = min(good, key=lambda each: tried[each][2])
    return best, tried[best]


def mistakes(
    questions: Sequence[Judged], table: Mapping[Known, Weights], bounds: tuple[float, float]
) -> tuple[int, int, int]:
    """How many answers are lost, how many questions without one get one, and how much is read."""
    lost = wrong = read = 0
    for asked, evidence, right in questions:
        skimmed = [
            each._replace(reading=None) if each.language == "English" else each for each in evidence
        ]
        likely = [table[each.weights_key].probability(each) for each in skimmed]
        is_open = max(likely, default=0.0) <= bounds[1]
        for row, each in enumerate(evidence):
            if is_open and each.language == "English" and likely[row] >= bounds[0]:
                read += 1
                likely[row] = table[each.weights_key].probability(each)
        shown = [each >= least_shown(likely) for each in likely]
        lost += any(right) and not any(map(min, shown, right))
        wrong += not asked.answers and any(shown)
    return lost, wrong, read


def fit(libraries: Sequence[Sequence[Judged]], known: Known) -> NDArray[np.float64] | None:
    """A row of `Weights`.

    A nearness that is to be missing is left out. So is a reading: of what has one, only what is
    foreign is taken then, for what cannot be read is of other languages. Of English it is left out
    to skim, and of other languages where an embedder understands them. None where there is nothing.
    """
    language, has_nearness = known
    is_surest = known == ("English", True)
    is_english = language in {"English", "skimmed"}
    rows, answers, counts = [], [], []
    has_reading = is_multilingual = False
    for library in libraries:
        hits = [hit for question in library for hit in question.counted()]
        for each, right, counted in hits:
            if _is_fit_for(each, known):
                told = math.log1p(each.told)
                reading, nearness = each.reading or 0.0, each.nearness or 0.0
                rows.append((1.0, reading, nearness, each.coverage, told, each.missing))
                answers.append(right)
                weight = LOST if right and language != "unread" else 1.0
                counts.append(counted * weight / len(hits))
                is_multilingual = each.multilingual and has_nearness
    if not rows:
        return None
    has_reading = language == "English" or (language == "foreign" and not is_multilingual)
    used = np.array([1.0, has_reading, has_nearness, not is_surest, not is_english, not is_english])
    table, given = np.array(rows), MISSING if is_english else 0.0
    answered = np.array(answers, dtype=float)
    weights = regression(table * used, answered, np.array(counts), given * table[:, -1])
    weights[-1] += given
    return weights


def _is_fit_for(evidence: Evidence, known: Known) -> bool:
    language, has_nearness = evidence.weights_key
    also = {"foreign": "unread", "English": "skimmed"}.get(language)
    same = known[0] in {language, also}
    return same and (has_nearness or not known[1])


def regression(
    rows: NDArray[np.float64],
    answers: NDArray[np.float64],
    counts: NDArray[np.float64],
    given: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Logistic regression by Newton's method, with a ridge too small to matter.

    What is given of each logit stays as it is.
    """
    weights = np.zeros(rows.shape[1])
    counts = counts * len(counts) / counts.sum()
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-given - rows @ weights))
        slope = rows.T @ (counts * (answers - likely)) - RIDGE * weights
        curve = rows.T @ (rows * (counts * likely * (1 - likely))[:, None])
        weights += np.linalg.solve(curve + RIDGE * np.eye(len(weights)), slope)
    return weights


if __name__ == "__main__":
    main()

"""Fits how sure a hit is: the weights of `storage.retrieval.confidence`.

    python -m benchmarks.calibration --xquad FILE ... --conversations FILE --data DIR ...
        [--embedder minilm]

The libraries and questions are those of `benchmarks.confidence`, which tells where FILE and DIR
come from; every other question is used. What is fitted is whether each hit shown answers, by a
logistic regression for each kind of evidence that may be missing; every library counts the same.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.confidence import SHOWN, Shelf, answering, asked_for, stocked
from storage.models import Identity, SearchFilter
from storage.retrieval.confidence import WEIGHTS, Evidence, Known

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


class Judged(NamedTuple):
    """What speaks for a hit, whether it answers, and what that counts."""

    evidence: Evidence
    right: bool
    counts: float


def main() -> None:
    """Prints the weights."""
    embedder, shelves = asked_for("Fits how sure a hit is.")
    found: dict[str, list[Judged]] = defaultdict(list)
    for shelf in shelves:
        found[shelf.name] += judged(shelf, embedder)
    for known in WEIGHTS:
        weights = fit(list(found.values()), known)
        print(known, "nothing" if weights is None else weights.round(2))


def judged(shelf: Shelf, embedder: Embedder) -> Iterator[Judged]:
    """Each hit of every other question.

    Of a question that has an answer, the others are left out: they may answer as well.
    """
    with stocked(shelf, embedder) as library:
        for asked in shelf.questions[::2]:
            found = library.engine.search(Identity(), asked.text, SearchFilter(), SHOWN)
            evidence = library.confidence.evidence(asked.text, found.hits)
            for speaks, right in zip(evidence, answering(asked, found), strict=True):
                if right or not asked.answers:
                    yield Judged(speaks, right, HARD_COUNTS if asked.kind in HARD else 1.0)


def fit(libraries: Sequence[Sequence[Judged]], known: Known) -> NDArray[np.float64] | None:
    """A row of `Weights`.

    A nearness that is to be missing is left out. So is a reading: of what has one, only what is
    foreign is taken then, for what cannot be read is of other languages. None where there is
    nothing.
    """
    language, has_nearness = known
    has_reading, is_surest = language != "unread", known == ("English", True)
    is_english = language == "English"
    used = np.array([1.0, has_reading, has_nearness, not is_surest, not is_english, not is_english])
    rows, answers, counts = [], [], []
    for library in libraries:
        for each, right, counted in library:
            if _is_fit_for(each, known):
                logit = each.reading.logit if each.reading else 0.0
                told = math.log1p(each.told)
                rows.append((1.0, logit, each.nearness or 0.0, each.coverage, told, each.missing))
                answers.append(right)
                weight = LOST if right and has_reading else 1.0
                counts.append(counted * weight / len(library))
    if not rows:
        return None
    table, given = np.array(rows), MISSING if is_english else 0.0
    answered = np.array(answers, dtype=float)
    weights = regression(table * used, answered, np.array(counts), given * table[:, -1])
    weights[-1] += given
    return weights


def _is_fit_for(evidence: Evidence, known: Known) -> bool:
    language, has_nearness = evidence.weights_key
    same = language == known[0] or (language, known[0]) == ("foreign", "unread")
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

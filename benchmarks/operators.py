"""How often the first five operators hold a right one, and what the tools of the catalogue cost.

    python -m benchmarks.operators

The intents are those of the tests. "seen" were there while the glossary was written; "unseen" came
after it. Beside them stands what rank-bm25 alone does, over the descriptions of the classes as
words between blanks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import anyio
from rank_bm25 import BM25Okapi

from tools.data.catalogue.bundle import bundled, bundled_index
from tools.data.catalogue.search import Score
from tools.data.operators import get_operator_info, list_operator_catalog, retrieve_operators

SETS = Path(__file__).parents[1] / "tests" / "tools" / "data" / "sets" / "intents.json"
TOP = 5
ROUNDS = 50

Ranking = Callable[[str], Sequence[str]]


def main() -> None:
    """Prints the shares, then milliseconds of processor."""
    begun = time.process_time()
    names = list(bundled().operators)
    bundled_index().by_both("begin")
    print(f"first search, with all that it loads: {_spent(begun):.1f} ms of processor\n")
    plain = BM25Okapi([each.description.lower().split() for each in bundled().operators.values()])
    rankings: dict[str, Ranking] = {
        "hybrid": lambda intent: _best(_scores(bundled_index().by_both(intent))),
        "words": lambda intent: _best(_scores(bundled_index().by_words(intent))),
        "rank-bm25": lambda intent: _best(
            dict(zip(names, plain.get_scores(intent.lower().split()), strict=True))
        ),
    }
    print(f"{'intents':<12}{'count':>7}" + "".join(f"{name:>12}" for name in rankings))
    for language, parts in json.loads(SETS.read_text(encoding="utf-8")).items():
        for part, intents in parts.items():
            hits = (_hits(ranking, intents) for ranking in rankings.values())
            counted = "".join(f"{each:>12}" for each in hits)
            print(f"{language + ' ' + part:<12}{len(intents):>7}{counted}")
    print()
    anyio.run(_cost)


def _scores(found: Mapping[str, Score]) -> dict[str, float]:
    return {name: each.score for name, each in found.items()}


def _best(scores: Mapping[str, float]) -> list[str]:
    found = sorted((-score, name) for name, score in scores.items() if score > 0)
    return [name for _, name in found[:TOP]]


def _hits(ranking: Ranking, intents: Sequence[tuple[str, list[str]]]) -> int:
    return sum(not set(ranking(intent)).isdisjoint(right) for intent, right in intents)


async def _cost() -> None:
    calls: dict[str, Callable[[], Any]] = {
        "get_operator_info": lambda: get_operator_info("TextLengthFilter"),
        "get_operator_info, mistyped": lambda: get_operator_info("text_lenght_filter"),
        "list_operator_catalog": list_operator_catalog,
        "list_operator_catalog, all": lambda: list_operator_catalog(
            include_parameters=True, limit=1_000
        ),
    }
    for name, call in calls.items():
        spent = []
        for _ in range(ROUNDS):
            begun = time.process_time()
            call()
            spent.append(_spent(begun))
        print(f"{name:<30}{median(spent):>8.2f} ms")
    spent = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        await retrieve_operators("remove duplicate documents")
        spent.append(_spent(begun))
    print(f"{'retrieve_operators':<30}{median(spent):>8.2f} ms")


def _spent(begun: float) -> float:
    return (time.process_time() - begun) * 1_000


if __name__ == "__main__":
    main()

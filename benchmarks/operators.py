"""Measures how well operators are found, how many intents find none, and what the tools cost.

    python -m benchmarks.operators

The intents are those of the tests. "unseen" ones were written before the search was changed, and
looked at only afterwards. rank-bm25 ranks the descriptions of the classes as words between blanks.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import anyio
from rank_bm25 import BM25Okapi

from tools.data.catalogue.catalogue import bundled
from tools.data.catalogue.search import FLOOR, bundled_index
from tools.data.operators import get_operator_info, list_operator_catalog, retrieve_operators

SETS = Path(__file__).parents[1] / "tests" / "tools" / "data" / "sets"
TOP = 5
ROUNDS = 50

Scores = Callable[[str], Mapping[str, float]]


def main() -> None:
    """Prints the counts, then milliseconds of processor."""
    begun = time.process_time()
    bundled_index().search("begin")
    print(f"first search, with all that it loads: {_spent(begun):.1f} ms of processor\n")
    hybrid: Scores = partial(_search, with_meaning=True)
    words: Scores = partial(_search, with_meaning=False)
    counts: dict[str, Callable[[Sequence[Any]], int]] = {
        "hybrid": partial(_right, hybrid, TOP),
        "first": partial(_right, hybrid, 1),
        "words": partial(_right, words, TOP),
        "rank-bm25": partial(_right, _plain_scores(), TOP),
    }
    _print_table("intents.json", counts)
    _print_table("foreign.json", {"nothing": partial(_nothing, hybrid)})
    anyio.run(_cost)


def _search(intent: str, *, with_meaning: bool) -> dict[str, float]:
    found = bundled_index().search(intent, with_meaning=with_meaning)
    return {name: each.score for name, each in found.items() if each.score >= FLOOR}


def _plain_scores() -> Scores:
    names = list(bundled().operators)
    plain = BM25Okapi([each.description.lower().split() for each in bundled().operators.values()])
    return lambda intent: dict(zip(names, plain.get_scores(intent.lower().split()), strict=True))


def _print_table(name: str, counts: Mapping[str, Callable[[Sequence[Any]], int]]) -> None:
    print(f"{name:<20}{'count':>7}" + "".join(f"{each:>12}" for each in counts))
    for language, parts in json.loads(SETS.joinpath(name).read_text(encoding="utf-8")).items():
        for part, intents in parts.items():
            row = "".join(f"{count(intents):>12}" for count in counts.values())
            print(f"{language + ' ' + part:<20}{len(intents):>7}{row}")
    print()


def _right(scores: Scores, top: int, intents: Sequence[tuple[str, list[str]]]) -> int:
    """Counts the intents that have one of their operators among the best."""
    return sum(not set(_best(scores(intent), top)).isdisjoint(right) for intent, right in intents)


def _best(scores: Mapping[str, float], top: int) -> list[str]:
    found = sorted((-score, name) for name, score in scores.items() if score > 0)
    return [name for _, name in found[:top]]


def _nothing(scores: Scores, intents: Sequence[str]) -> int:
    return sum(not scores(intent) for intent in intents)


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

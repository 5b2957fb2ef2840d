"""Tool retrieval: how well and how fast tools are found, beside FastMCP's search and rank-bm25.

    python -m benchmarks.tool_retrieval --data DIR [--data DIR ...] [--queries N] [--scale N]
        [--half development|held-out] [--cache FILE] [--json]

A set is a folder with `tools.jsonl` ({id, name, description, tags, server, parameters: a schema, or
[{name, type, description, required}]}), `queries.jsonl` ({id, text}) and `qrels.tsv` (query id,
tool id, grade); DIR is one, or holds some. A set with `servers.tsv`, as
`benchmarks/sets/everyday`, has Toolcrib's own tools too. `--half` asks the half of the queries
that a change may be tuned on, or the other one. All rankers answer the same queries in the same
run, in one thread.
Embedding with MiniLM takes a minute for each 4,000 tools; `--cache` keeps it between runs.

`--scale` measures a catalogue of that many tools: those of the sets, then variants of them under
other names. `first_search_s` is the time from the start of a process that has imported nothing to
its first answer, `ready_s` that until every part has answered, both from the cache.
"""

import argparse
import json
import math
import random
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.retrieval import ndcg, recall
from benchmarks.tool_rankers import EVERYTHING, RANKERS, Indexed, Ranker, make_ranker
from benchmarks.tool_scale import catalogue, changed, started
from benchmarks.tool_sets import HALVES, ToolSet, read_sets
from storage.catalog.catalog import Analyses
from storage.database import Database

ANSWERED = 50
"""Queries of each set whose whole answers are looked at."""

AT_SCALE = 200
"""Queries that are asked of a large catalogue."""


@dataclass(frozen=True, slots=True)
class Quality:
    """How well one ranker did on one set.

    Attributes:
        data: The set.
        ranker: Which one.
        tools: How many there are.
        queries: How many were asked.
        first: Share of the queries whose best tool is right.
        top_3: Share of the queries with a right tool among the first three.
        ndcg_10: Normalised discounted cumulative gain of the first ten.
        recall_5: Share of the right tools among the first five; recall_10 is like it.
        p50_ms: Of a search; so is p95_ms.
        answer_tokens: Of what a model is told of the best five, four characters each; the mean.
    """

    data: str
    ranker: str
    tools: int
    queries: int
    first: float
    top_3: float
    ndcg_10: float
    recall_5: float
    recall_10: float
    p50_ms: float
    p95_ms: float
    answer_tokens: float


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast one ranker is on a large catalogue; None is what it does not have, or was not asked.

    Attributes:
        ranker: Which one.
        tools: How many there are.
        p50_ms: Of a search; so is p95_ms.
        add_ms: Of adding one tool more, the median; add_p95_ms and remove_ms are like it.
        first_search_s: Until a new process has answered; ready_s, with every part of the index.
    """

    ranker: str
    tools: int
    p50_ms: float
    p95_ms: float
    add_ms: float | None = None
    add_p95_ms: float | None = None
    remove_ms: float | None = None
    first_search_s: float | None = None
    ready_s: float | None = None


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="Tool retrieval quality and speed.")
    parser.add_argument("--data", type=Path, required=True, action="append", help="a set, or sets")
    parser.add_argument("--queries", type=int, help="of each set at most; by default all")
    parser.add_argument("--half", choices=HALVES, help="of each set's queries; by default both")
    parser.add_argument("--scale", type=int, help="also measure the speed with so many tools")
    parser.add_argument("--cache", type=Path, help="file that keeps what the index makes")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    sets = read_sets(arguments.data, arguments.queries, arguments.half)
    with tempfile.TemporaryDirectory() as directory:
        file = arguments.cache or Path(directory, "cache.db")
        with closing(Database(file)) as database:
            quality = [each for found in sets for each in measure(found, database)]
            speed = list(at_scale(sets, arguments.scale, database)) if arguments.scale else []
    told = {
        "quality": [asdict(each) for each in quality],
        "mean": means(quality),
        "speed": [asdict(each) for each in speed],
    }
    if arguments.json:
        print(json.dumps(told))
    else:
        print("\n\n".join(table(rows) for rows in told.values() if rows))


def measure(data: ToolSet, database: Database) -> Iterator[Quality]:
    """Asks each ranker every query of a set."""
    for name in RANKERS:
        ranker = make_ranker(name, data.records, Analyses(database))
        ranked, seconds = ask(ranker, list(data.queries.values()))
        judged = list(zip(ranked, (data.qrels[key] for key in data.queries), strict=True))
        yield Quality(
            data=data.name,
            ranker=name,
            tools=len(data.records),
            queries=len(judged),
            first=statistics.fmean(_is_found(*each, 1) for each in judged),
            top_3=statistics.fmean(_is_found(*each, 3) for each in judged),
            ndcg_10=statistics.fmean(ndcg(*each, 10) for each in judged),
            recall_5=statistics.fmean(recall(*each, 5) for each in judged),
            recall_10=statistics.fmean(recall(*each, 10) for each in judged),
            p50_ms=1000 * statistics.median(seconds),
            p95_ms=1000 * p95(seconds),
            answer_tokens=statistics.fmean(
                len(ranker.answer(text)) / 4 for text in list(data.queries.values())[:ANSWERED]
            ),
        )


def ask(ranker: Ranker, queries: Sequence[str]) -> tuple[list[list[str]], list[float]]:
    """Each query's tools, best first, and how long each took in seconds."""
    ranker.rank("warm up")
    ranked, seconds = [], []
    for text in queries:
        began = time.perf_counter()
        ranked.append(ranker.rank(text))
        seconds.append(time.perf_counter() - began)
    return ranked, seconds


def at_scale(sets: Sequence[ToolSet], size: int, database: Database) -> Iterator[Speed]:
    """How fast each ranker is over a catalogue of `size` tools."""
    records = catalogue((record for data in sets for record in data.records), size)
    texts = [text for data in sets for text in data.queries.values()]
    random.Random(7).shuffle(texts)  # noqa: S311  # the same order each time
    for name in RANKERS:
        ranker = make_ranker(name, records, Analyses(database))
        _, seconds = ask(ranker, texts[:AT_SCALE])
        told: dict[str, float] = {}
        if isinstance(ranker, Indexed):
            adding, removing = changed(ranker.index, records)
            told["add_ms"] = 1000 * statistics.median(adding)
            told["add_p95_ms"] = 1000 * p95(adding)
            told["remove_ms"] = 1000 * statistics.median(removing)
        if name == EVERYTHING:
            told["first_search_s"], told["ready_s"] = started(records, database, texts[0])
        yield Speed(
            ranker=name,
            tools=len(records),
            p50_ms=1000 * statistics.median(seconds),
            p95_ms=1000 * p95(seconds),
            **told,
        )


def means(quality: Sequence[Quality]) -> list[dict[str, str | float]]:
    """What each ranker reaches in the mean, every set counting the same."""
    told: list[dict[str, str | float]] = []
    for name in RANKERS:
        own = [each for each in quality if each.ranker == name]
        measured = {
            key: statistics.fmean(getattr(each, key) for each in own)
            for key in ("first", "top_3", "ndcg_10", "recall_5", "recall_10")
        }
        told.append({"data": f"mean of {len(own)}", "ranker": name, **measured})
    return told


def _is_found(ranked: Sequence[str], grades: Mapping[str, int], places: int) -> bool:
    return any(grades.get(each) for each in ranked[:places])


def p95(values: Sequence[float]) -> float:
    """The value that 95 in 100 do not exceed."""
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def table(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows under the names of their columns, which are those of the first."""
    cells = [list(rows[0]), *([_shown(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if cell[:1].isdigit() else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in cells
    )


def _shown(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()

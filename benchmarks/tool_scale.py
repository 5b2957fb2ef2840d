"""A large catalogue of tools: how fast it answers, changes and starts.

    python -m benchmarks.tool_scale FILE QUERY

is what `benchmarks.tool_retrieval` starts to measure a start: a process that has imported nothing
opens the record, reads the tools that files describe, and answers; then it waits until each part of
the index is there, and answers again. It prints the seconds from its start to both answers.
"""

import time

BEGAN = time.perf_counter()  # before anything else is imported

import itertools  # noqa: E402  # after the clock was started
import random  # noqa: E402  # the same
import subprocess  # noqa: E402  # the same
import sys  # noqa: E402  # the same
from collections.abc import Callable, Iterable, Sequence  # noqa: E402  # the same
from contextlib import closing  # noqa: E402  # the same
from pathlib import Path  # noqa: E402  # the same
from typing import TypeVar  # noqa: E402  # the same

from storage.catalog.catalog import Analyses, Record, Records  # noqa: E402  # the same
from storage.database import Database  # noqa: E402  # the same
from tools.retrieval import SearchQuery, ToolIndex, ToolRecord  # noqa: E402  # the same

CHANGES = 200
"""Tools that are added and removed."""

HOME = Path("/benchmark")

Given = TypeVar("Given")


def catalogue(records: Iterable[ToolRecord], size: int) -> list[ToolRecord]:
    """So many tools: the records, each once, then variants of them as other servers have them."""
    known = list({record.tool_id: record for record in records}.values())
    chance = random.Random(7)  # noqa: S311  # the same ones each time
    more = (_variant(each, turn, chance) for turn in itertools.count(2) for each in known)
    return list(itertools.islice(itertools.chain(known, more), size))


def _variant(record: ToolRecord, turn: int, chance: random.Random) -> ToolRecord:
    """A tool like another, with its description turned round."""
    words = record.description.split()
    cut = chance.randrange(len(words) + 1)
    return record.model_copy(
        update={
            "tool_id": f"{record.tool_id}_v{turn}",
            "name": f"{record.name}_v{turn}",
            "description": " ".join(words[cut:] + words[:cut]),
        }
    )


def changed(index: ToolIndex, records: Sequence[ToolRecord]) -> tuple[list[float], list[float]]:
    """Seconds that it took to add one tool more, each time, and to remove it."""
    more = [
        record.model_copy(update={"tool_id": f"more:{at}", "name": f"{record.name}_more"})
        for at, record in enumerate(records[:CHANGES])
    ]
    adding = [_timed(index.add_tool, record) for record in more]
    removing = [_timed(index.remove_tool, record.tool_id) for record in more]
    return adding, removing


def started(records: Sequence[ToolRecord], database: Database, query: str) -> tuple[float, float]:
    """Seconds until a new process answers by what is kept, first and with every part."""
    kept = Records(database)
    kept.replace(
        HOME,
        [
            Record(each.tool_id, HOME / "tools.json", each.model_dump(mode="json"))
            for each in records
        ],
    )
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.tool_scale", str(database.path), query],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    kept.replace(HOME, [])
    first, ready = map(float, ended.stdout.split())
    return first, ready


def main() -> None:
    """Answers a query in this new process, twice."""
    file, query = sys.argv[1:]
    asked = SearchQuery(query_text=query)
    with closing(Database(Path(file))) as database:
        index = ToolIndex(cache=Analyses(database))
        index.start()
        records = Records(database).listed()
        index.add_tools([ToolRecord.model_validate(each.fields) for each in records])
        index.search(asked)
        first = time.perf_counter() - BEGAN
        index.build_index()
        index.search(asked)
        ready = time.perf_counter() - BEGAN
        index.close()
    print(first, ready)


def _timed(action: Callable[[Given], object], given: Given) -> float:
    began = time.perf_counter()
    action(given)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()

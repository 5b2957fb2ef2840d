"""Two processes on one data directory: what is lost, what cannot be found, and how late it is.

    python -m benchmarks.shared_directory [--documents 1500] [--json]

Each process adds its documents one by one through the product's own ingest, with the bundled
embedder at work, and meanwhile asks for what the other has just acknowledged, by a word that
stands in that document alone. Staleness is how long after the acknowledgement a search was still
begun that did not find it: 0 where the first one did. At the end a third process asks for every
document by its word and by its meaning: a document is lost if it is not in the record, and
unreachable if a search does not find it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import statistics
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

    from storage.library import Library
    from storage.models import NewContext

NAMES = ("first", "second")
PATIENCE = 30.0
"""Seconds after which a document that is not found counts as never found by the other process."""

WORDS = """
    harbour lantern orchard meadow granite saddle kettle violin thunder basket copper window river
    candle feather mountain garden bridge winter market needle pepper silver cotton engine ladder
    """.split()  # noqa: SIM905  # some dozen words read best as text


@dataclass(frozen=True, slots=True)
class Report:
    """What was seen; times in milliseconds."""

    documents: int
    lost: int
    unreachable_by_words: int
    unreachable_by_meaning: int
    staleness_p50_ms: float
    staleness_p95_ms: float
    staleness_max_ms: float
    add_p50_ms: float
    add_p95_ms: float
    seconds: float


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="Two processes that write and search at once.")
    parser.add_argument("--documents", type=int, default=1500, help="documents a process")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    report = run(arguments.documents)
    if arguments.json:
        print(json.dumps(asdict(report)))
    else:
        for key, value in asdict(report).items():
            print(f"{key:24} {value:.1f}" if isinstance(value, float) else f"{key:24} {value}")


def run(documents: int) -> Report:
    """Lets two processes write and search, then looks for everything in a fresh library."""
    spawn = multiprocessing.get_context("spawn")
    said = {name: spawn.Queue() for name in NAMES}
    found: Queue[dict[str, list[float]]] = spawn.Queue()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        processes = [
            spawn.Process(
                target=_work,
                args=(Path(directory), name, documents, said[name], said[other], found),
            )
            for name, other in (NAMES, NAMES[::-1])
        ]
        for process in processes:
            process.start()
        answers = [found.get() for _ in processes]
        for process in processes:
            process.join()
            assert process.exitcode == 0
        seconds = time.perf_counter() - began
        lost, by_words, by_meaning = _look(Path(directory), documents)
    staleness = [each for answer in answers for each in answer["staleness"]]
    adds = [each for answer in answers for each in answer["adds"]]
    return Report(
        documents=documents * len(NAMES),
        lost=lost,
        unreachable_by_words=by_words,
        unreachable_by_meaning=by_meaning,
        staleness_p50_ms=1000 * statistics.median(staleness),
        staleness_p95_ms=1000 * statistics.quantiles(staleness, n=20)[-1],
        staleness_max_ms=1000 * max(staleness),
        add_p50_ms=1000 * statistics.median(adds),
        add_p95_ms=1000 * statistics.quantiles(adds, n=20)[-1],
        seconds=seconds,
    )


def document(name: str, number: int) -> NewContext:
    """A short text of common words with one that stands in it alone."""
    from storage.models import NewContext  # a spawned process starts sooner

    chance = random.Random(f"{name}{number}")  # noqa: S311  # the same text in every process
    return NewContext(
        raw_type="text",
        raw_id=f"{name}{number}",
        title="",
        text=f"{name}x{number} {' '.join(chance.choices(WORDS, k=8))}",
    )


def _open(directory: Path) -> Library:
    from storage.index.embedders.minilm import MiniLMEmbedder
    from storage.library import Library

    return Library(directory, MiniLMEmbedder())


def _work(  # noqa: PLR0913, PLR0917  # who, where, how much, and the ways to speak
    directory: Path,
    name: str,
    documents: int,
    said: Queue[tuple[int, float] | None],
    heard: Queue[tuple[int, float] | None],
    found: Queue[dict[str, list[float]]],
) -> None:
    from storage.models import Identity, SearchFilter  # a spawned process

    library = _open(directory)
    library.indexer.start()
    shelf = library.shelf(Identity())
    adds: list[float] = []
    staleness: list[float] = []

    def write() -> None:
        for number in range(documents):
            began = time.perf_counter()
            shelf.add(document(name, number))
            adds.append(time.perf_counter() - began)
            said.put((number, time.time()))
        said.put(None)

    def ask() -> None:
        other = NAMES[NAMES[0] == name]
        while (news := heard.get()) is not None:
            number, acknowledged = news
            missed = 0.0
            while missed < PATIENCE:
                begun = time.time()
                hits = shelf.search(f"{other}x{number}", SearchFilter(), 3).hits
                if any(hit.context.raw_id == f"{other}{number}" for hit in hits):
                    break
                missed = begun - acknowledged
            staleness.append(missed)

    threads = [threading.Thread(target=each) for each in (write, ask)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    library.close()
    found.put({"adds": adds, "staleness": staleness})


def _look(directory: Path, documents: int) -> tuple[int, int, int]:
    """How many documents are lost, and how many cannot be found by words and by meaning."""
    from storage.models import Identity, SearchFilter

    library = _open(directory)
    while library.indexer.step():
        pass
    shelf = library.shelf(Identity())
    stored = {each.raw_id for each in shelf.contexts(SearchFilter(), 10 * documents)}
    missing = [0, 0, 0]
    for name in NAMES:
        for number in range(documents):
            wanted = document(name, number)
            missing[0] += wanted.raw_id not in stored
            for place, query, alpha in ((1, f"{name}x{number}", 0.0), (2, wanted.text, 1.0)):
                hits = shelf.search(query, SearchFilter(), 10, alpha=alpha).hits
                missing[place] += all(hit.context.raw_id != wanted.raw_id for hit in hits)
    library.close()
    return missing[0], missing[1], missing[2]


if __name__ == "__main__":
    main()

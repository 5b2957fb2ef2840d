"""What is found by meaning right after an import: with and without the first pass, and how soon.

    python -m benchmarks.first_pass quality --data DIR
    python -m benchmarks.first_pass time --data DIR [--passages 15000]

The folder is one of `benchmarks.retrieval`. `quality` asks every judged question while 0, 25 and
50 % of the passages have their own vectors. `time` imports the corpus, over and over, with the
indexer at work, and adds notes meanwhile, as an agent does.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.retrieval import add, ndcg, read_jsonl, read_qrels, recall
from storage.index.embedders.minilm import MiniLMEmbedder
from storage.library import Library, Shelf
from storage.models import ContextType, Identity, NewContext, SearchFilter

SHARES = (0.0, 0.25, 0.5)
DEEP = 200
NOTES = (
    ("the heron wades through shallow water at dawn", "which bird walks in a pond early"),
    ("my sister's wedding takes place in the town hall", "where do they get married"),
    ("the boiler in the cellar leaks and drips", "plumbing trouble below the house"),
    ("buy flour, butter and yeast on the way home", "ingredients for baking"),
    ("the violin teacher moved lessons to Thursday", "music class rescheduled"),
)
"""Notes, and a question for each that shares no word of meaning with it."""


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="What an import is found by before its vectors.")
    parser.add_argument("what", choices=("quality", "time"))
    parser.add_argument("--data", type=Path, required=True, help="folder in BEIR form")
    parser.add_argument("--passages", type=int, default=15_000)
    arguments = parser.parse_args()
    if arguments.what == "quality":
        compare(arguments.data)
    else:
        race(arguments.data, arguments.passages)


def compare(data: Path) -> None:
    """Prints NDCG@10 and R@100 for each share of passages with vectors of their own."""
    with _importing() as library:
        shelf = library.shelf(Identity())
        for row in read_jsonl(data / "corpus.jsonl"):
            add(shelf, row)
        total = shelf.index_status().total
        began = time.process_time()
        while shelf.index_status().rough < total:
            library.indexer.step()
        print(f"first pass: {1000 * (time.process_time() - began) / total:.2f} ms CPU a passage")
        for share in SHARES:
            before, began = shelf.index_status().embedded, time.process_time()
            while shelf.index_status().embedded < share * total:
                library.indexer.step()
            made = shelf.index_status().embedded - before
            if made:
                print(
                    f"vectors: {1000 * (time.process_time() - began) / made:.2f} ms CPU a passage"
                )
            found = _judge(library, data)
            with library.database.write() as connection:
                rough = connection.execute("SELECT * FROM rough_vectors").fetchall()
                connection.execute("DELETE FROM rough_vectors")
            without = _judge(library, data)
            with library.database.write() as connection:
                connection.executemany("INSERT INTO rough_vectors VALUES (?, ?, ?)", rough)
            for name, (gain, share_found) in (("without", without), ("with", found)):
                print(
                    f"{share:4.0%} {name:8} NDCG@10 {gain:.4f}  R@100 {share_found:.4f}", flush=True
                )


def race(data: Path, passages: int) -> None:
    """Prints how soon an import is found by meaning, and a note that is added meanwhile."""
    with _importing() as library:
        shelf = library.shelf(Identity())
        began = time.perf_counter()
        library.indexer.start()
        for number, row in enumerate(itertools.cycle(list(read_jsonl(data / "corpus.jsonl")))):
            if number % 100 == 0 and shelf.index_status().total >= passages:
                break
            add(shelf, {**row, "_id": f"{number}"})
        stored = time.perf_counter()
        _wait(lambda: _is_meant(shelf))
        total = shelf.index_status().total
        print(f"{total} passages stored in {stored - began:.1f} s")
        print(f"all found by meaning {time.perf_counter() - stored:.1f} s later")
        library.importing = False
        seconds = [_note(library, text, question) for text, question in NOTES]
        status = shelf.index_status()
        print(f"{status.embedded} have their own vectors; {status.rough} rough ones")
        print("a note is found by its meaning after", *(f"{each:.2f}" for each in seconds), "s")
        print(f"median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s")


def _note(library: Library, text: str, question: str) -> float:
    began = time.perf_counter()
    kept = (
        library.shelf(Identity())
        .add(NewContext(context_type=ContextType.EVENT, title="", text=text))
        .context
    )
    criteria = SearchFilter(ids=(kept.id,))
    search = partial(library.engine.search, Identity(), question, criteria, 1)
    _wait(lambda: any(hit.dense for hit in search().hits))
    return time.perf_counter() - began


def _is_meant(shelf: Shelf) -> bool:
    status = shelf.index_status()
    return status.embedded + status.rough >= status.total


def _wait(is_so: Callable[[], bool]) -> None:
    while not is_so():
        time.sleep(0.02)


def _judge(library: Library, data: Path) -> tuple[float, float]:
    qrels = read_qrels(data / "qrels.tsv")
    gains, found = [], []
    for query in read_jsonl(data / "queries.jsonl"):
        judged = qrels.get(query["_id"])
        if judged:
            hits = library.engine.search(Identity(), query["text"], SearchFilter(), DEEP).hits
            ranked = list(dict.fromkeys(hit.context.raw_id for hit in hits))
            gains.append(ndcg(ranked, judged, 10))
            found.append(recall(ranked, judged, 100))
    return statistics.fmean(gains), statistics.fmean(found)


@contextmanager
def _importing() -> Iterator[Library]:
    with tempfile.TemporaryDirectory() as directory:
        library = Library(Path(directory), MiniLMEmbedder())
        library.importing = True
        yield library
        library.close()


if __name__ == "__main__":
    main()

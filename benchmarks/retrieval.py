"""Retrieval quality and speed on a folder in BEIR form, through the product's ingest and search.

    python -m benchmarks.retrieval --data DIR [--mode bm25|dense|hybrid] [--json]

The folder holds `corpus.jsonl` ({_id, title, text}), `queries.jsonl` ({_id, text}) and `qrels.tsv`
(query-id, corpus-id, score; with a header). A document's rank is that of its best chunk.
"""

import argparse
import csv
import json
import math
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.index.embedders.base import Embedder
from storage.index.embedders.e5 import E5Embedder
from storage.library import Library, Shelf
from storage.models import Identity, NewContext, SearchFilter

ALPHAS = {"bm25": 0.0, "dense": 1.0, "hybrid": None}
"""Weight of the dense score in each mode; None is the product's own choice for each query."""

DEEP = 200
"""Chunks ranked, so that enough distinct documents are left for Recall@100."""

SHOWN = 10
"""Chunks asked for where time is measured: what a client asks for."""

Qrels = Mapping[str, Mapping[str, int]]
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Report:
    """What was measured; times in milliseconds, ingest in documents a second."""

    data: str
    mode: str
    documents: int
    chunks: int
    queries: int
    ndcg_10: float
    recall_10: float
    recall_100: float
    p50_ms: float
    p95_ms: float
    ingest_per_second: float
    embed_per_second: float


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="Retrieval quality and speed on BEIR data.")
    parser.add_argument("--data", type=Path, required=True, help="folder in BEIR form")
    parser.add_argument("--mode", choices=sorted(ALPHAS), default="hybrid")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    report = run(arguments.data, arguments.mode)
    if arguments.json:
        print(json.dumps(asdict(report)))
    else:
        for key, value in asdict(report).items():
            print(f"{key:18} {value:.3f}" if isinstance(value, float) else f"{key:18} {value}")


def run(data: Path, mode: str) -> Report:
    """Ingests the corpus into a fresh library, asks every judged query, scores the answers."""
    qrels = read_qrels(data / "qrels.tsv")
    queries = {row["_id"]: row["text"] for row in read_jsonl(data / "queries.jsonl")}
    with tempfile.TemporaryDirectory() as directory:
        library = Library(Path(directory), E5Embedder())
        shelf = library.shelf(Identity())
        began = time.perf_counter()
        documents = sum(1 for row in read_jsonl(data / "corpus.jsonl") if add(shelf, row))
        added = time.perf_counter()
        if mode != "bm25":
            while library.indexer.step():
                pass
        embedded = time.perf_counter()
        ranked, seconds = ask(library, shelf, {key: queries[key] for key in qrels}, ALPHAS[mode])
        chunks = shelf.index_status().total
        library.close()
    return Report(
        data=data.name,
        mode=mode,
        documents=documents,
        chunks=chunks,
        queries=len(ranked),
        ndcg_10=statistics.fmean(ndcg(ranked[key], qrels[key], 10) for key in ranked),
        recall_10=statistics.fmean(recall(ranked[key], qrels[key], 10) for key in ranked),
        recall_100=statistics.fmean(recall(ranked[key], qrels[key], 100) for key in ranked),
        p50_ms=1000 * statistics.median(seconds),
        p95_ms=1000 * statistics.quantiles(seconds, n=20)[-1],
        ingest_per_second=documents / (added - began),
        embed_per_second=chunks / (embedded - added) if mode != "bm25" else 0.0,
    )


def add(shelf: Shelf, row: Mapping[str, str]) -> bool:
    """Adds one document of the corpus; an empty one is left out."""
    title, text = row.get("title", ""), row["text"]
    if not (title + text).strip():
        return False
    shelf.add(
        NewContext(
            raw_type="beir",
            raw_id=row["_id"],
            title=title,
            text=text or title,
            markdown=False,
            media_type="text/plain",
            sha256=sha256(text.encode()).hexdigest(),
        )
    )
    return True


def ask(
    library: Library, shelf: Shelf, queries: Mapping[str, str], alpha: float | None
) -> tuple[dict[str, list[str]], list[float]]:
    """Each query's documents, best first, and how long each search took in seconds.

    The documents are those of the engine: whether each answers is `benchmarks.confidence`.
    """
    shelf.search("warm up", SearchFilter(), 1, alpha=alpha)
    ranked, seconds = {}, []
    for key, text in queries.items():
        began = time.perf_counter()
        shelf.search(text, SearchFilter(), SHOWN, alpha=alpha)
        seconds.append(time.perf_counter() - began)
        result = library.engine.search(shelf.identity, text, SearchFilter(), DEEP, alpha=alpha)
        ranked[key] = list(dict.fromkeys(hit.context.raw_id for hit in result.hits))
    return ranked, seconds


def ndcg(ranked: Sequence[str], judged: Mapping[str, int], depth: int) -> float:
    """Normalised discounted cumulative gain with linear gains, as trec_eval and BEIR count it."""
    gains = [judged.get(document, 0) for document in ranked[:depth]]
    ideal = sorted(judged.values(), reverse=True)[:depth]
    return _dcg(gains) / _dcg(ideal) if any(ideal) else 0.0


def recall(ranked: Sequence[str], judged: Mapping[str, int], depth: int) -> float:
    """The share of relevant documents among the first `depth`."""
    relevant = {document for document, grade in judged.items() if grade > 0}
    return len(relevant & set(ranked[:depth])) / len(relevant) if relevant else 0.0


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON Lines file."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def read_qrels(path: Path) -> Qrels:
    """Judgements: query → document → grade."""
    qrels: dict[str, dict[str, int]] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            qrels.setdefault(row["query-id"], {})[row["corpus-id"]] = int(row["score"])
    return qrels


def _dcg(gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 2) for rank, gain in enumerate(gains))


class RememberedEmbedder:
    """Keeps the vectors that another embedder makes of passages, for several libraries."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[str, Vectors] = {}
        self._lock = threading.Lock()
        self.model_id = embedder.model_id
        self.unread = embedder.unread
        self.floor = embedder.floor

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text."""
        with self._lock:
            fresh = [text for text in dict.fromkeys(texts) if text not in self._known]
            if fresh:
                made = self._embedder.embed_passages(fresh)
                self._known.update(zip(fresh, made, strict=True))
            return np.stack([self._known[text] for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """Returns one vector."""
        return self._embedder.embed_query(text)


if __name__ == "__main__":
    main()

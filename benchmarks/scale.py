"""How long searches, additions and deletions take as a library grows, and others on the same data.

    python -m benchmarks.scale [--chunks 1000 5000 50000] [--queries 30] [--json]

The data are made from a seed. A chunk is 100 words drawn by Zipf's law from 60,000, so that common
words abound, and a context of its own, which is the hardest for filters; a query is 8 words drawn
in the same way. Vectors have 384 dimensions and lie around 200 random directions; they come from a
text's hash, so that embedding is left out of every figure. Filters let 0.1, 5, 30 and 90 % of the
chunks through: by device and agent, by time, by entity.

Toolcrib does what it does for a tool: `search` is both kinds of index, true scores and the texts of
the ten best; `add` is a document of one chunk found by its words at once. Beside it, each alone:
Chroma (the nearest 100; metadata filters), rank-bm25 (the best 100; any change is a new index), and
SQLite's FTS5 (the best 100; filters by a join; synchronised as Toolcrib is). `open` is opening the
library, `first` the first search after it. Milliseconds, median and 95th percentile.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import statistics
import sys
import tempfile
import time
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cache, partial
from hashlib import sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from storage.contexts.contexts import insert_whole
from storage.contexts.ingestion import prepare
from storage.database import View
from storage.library import Library, Shelf
from storage.models import ContextType, Identity, NewContext, SearchFilter, TimeRange
from storage.tokenize import tokenize

VOCABULARY = 60_000
WORDS = 100
QUERY_WORDS = 8
DIMENSIONS = 384
DIRECTIONS = 200
SHARES = (0.001, 0.05, 0.3, 0.9)
DEVICES = {0.001: "watch", 0.05: "phone", 0.3: "laptop"}
AGENT = "main"
"""Of the largest share of chunks; the others are of another agent, and of no device named here."""

CHANGES = 30
REBUILDS = 3
"""Additions that are tried where each is a new index."""

Vectors = NDArray[np.float32]
Search = Callable[[str, str, float], int]
"""Searches for a query under a filter (its kind, empty for none, and its share): how many hits."""


@dataclass(frozen=True, slots=True)
class Report:
    """One operation of one engine on so many chunks, in milliseconds."""

    engine: str
    operation: str
    chunks: int
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class Item:
    """A chunk of the data, and what it can be filtered by."""

    number: int
    text: str
    device: str
    agent: str
    entities: tuple[str, ...]


class HashEmbedder:
    """A vector near one of the directions, by the text's hash."""

    model_id = "benchmark"
    cjk = True
    floor = 0.25

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text."""
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        """One vector."""
        seed = int.from_bytes(sha256(text.encode()).digest()[:4], "big")
        noise = np.random.default_rng(seed).standard_normal(DIMENSIONS)
        vector = _directions()[seed % DIRECTIONS] + 0.05 * noise
        return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="What each operation costs as a library grows.")
    parser.add_argument("--chunks", type=int, nargs="+", default=[1000, 5000, 50_000])
    parser.add_argument("--queries", type=int, default=30, help="searches of each kind")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    arguments = parser.parse_args()
    reports: list[Report] = []
    for chunks in arguments.chunks:
        items = list(make_items(chunks))
        queries = list(make_queries(arguments.queries))
        for engine in (_toolcrib, _chroma, _rank_bm25, _fts5):
            print(f"{chunks:,} chunks:{engine.__name__.replace('_', ' ')}", file=sys.stderr)
            with tempfile.TemporaryDirectory(prefix="toolcrib-scale-") as directory:
                for operation, samples in engine(Path(directory), items, queries):
                    name = engine.__name__.strip("_")
                    reports.append(_report(name, operation, chunks, samples))
    if arguments.json:
        print(json.dumps([asdict(report) for report in reports], indent=2))
    else:
        _print_table(reports, arguments.chunks)


def make_items(chunks: int) -> Iterator[Item]:
    """The data, the same for every engine."""
    chance = np.random.default_rng(4)
    bounds = list(accumulate(DEVICES))
    for number in range(chunks):
        rank = number * 7919 % chunks / chunks  # spreads those that share something
        device = [*DEVICES.values(), "server"][bisect(bounds, rank)]
        yield Item(
            number=number,
            text=_text(chance, WORDS),
            device=device,
            agent=AGENT if rank < SHARES[-1] else "other",
            entities=tuple(_entity(share) for share in SHARES if rank < share),
        )


def make_queries(queries: int) -> Iterator[str]:
    """What is looked for."""
    chance = np.random.default_rng(9)
    for _ in range(queries):
        yield _text(chance, QUERY_WORDS)


def _toolcrib(
    directory: Path, items: Sequence[Item], queries: Sequence[str]
) -> Iterator[tuple[str, list[float]]]:
    whole = Identity(user_id="ann")
    with closing(Library(directory, HashEmbedder())) as library:
        for start in range(0, len(items), 1000):
            with library.database.write() as connection:
                for item in items[start : start + 1000]:
                    whose = Identity("ann", item.device, item.agent)
                    new = _event(item)
                    insert_whole(View(connection, whose), new, prepare(new), float(item.number))
            _drain(library)

    def open_library() -> Library:
        return Library(directory, HashEmbedder())

    def search(shelf: Shelf, query: str, kind: str, share: float) -> int:
        criteria = SearchFilter()
        if kind == "time":
            criteria = SearchFilter(time_range=TimeRange(0, _until(share, items)))
        if kind == "entity":
            criteria = SearchFilter(entities=(_entity(share),))
        if kind == "identity":
            device = DEVICES.get(share, "")
            shelf = library.shelf(Identity("ann", device, "" if device else AGENT))
        return len(shelf.search(query, criteria, 10).hits)

    opened = []
    for _ in range(5):
        started = time.perf_counter()
        library = open_library()
        opened.append(time.perf_counter() - started)
        library.close()
    yield "open", opened
    with closing(open_library()) as library:
        shelf = library.shelf(whole)
        _, first = _timed(search, shelf, queries[0], "", 1.0)
        yield "first", [first]
        _drain(library)
        yield from _searches(partial(search, shelf), queries)
        added = []
        for number in range(CHANGES):
            new = NewContext(title="", text=f"{queries[0]} {number}", raw_id=f"new{number}")
            added.append(_timed(shelf.add, new)[1])
        yield "add", added
        _drain(library)
        yield (
            "delete",
            [_timed(shelf.delete_document, "", f"new{number}")[1] for number in range(CHANGES)],
        )


def _chroma(
    directory: Path, items: Sequence[Item], queries: Sequence[str]
) -> Iterator[tuple[str, list[float]]]:
    import chromadb  # takes a second, and is not every engine's
    from chromadb.config import Settings

    embedder = HashEmbedder()
    client: Any = chromadb.PersistentClient(
        path=str(directory), settings=Settings(anonymized_telemetry=False)
    )
    collection = client.create_collection(
        "all", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
    )

    def add(some: Sequence[Item]) -> None:
        collection.add(
            ids=[str(item.number) for item in some],
            embeddings=embedder.embed_passages([item.text for item in some]),
            documents=[item.text for item in some],
            metadatas=[
                {"device": item.device, "agent": item.agent, "time": float(item.number)}
                | dict.fromkeys(item.entities, True)
                for item in some
            ],
        )

    def search(query: str, kind: str, share: float) -> int:
        where: Any = None
        if kind == "time":
            where = {"time": {"$lte": _until(share, items)}}
        if kind == "entity":
            where = {_entity(share): True}
        if kind == "identity":
            where = {"device": DEVICES[share]} if share in DEVICES else {"agent": AGENT}
        found = collection.query(
            query_embeddings=[embedder.embed_query(query)], n_results=100, where=where, include=[]
        )
        return len(found["ids"][0])

    for start in range(0, len(items), 1000):
        add(items[start : start + 1000])
    search(queries[0], "", 1.0)
    yield from _searches(search, queries)
    numbers = range(len(items), len(items) + CHANGES)
    new = [Item(number, f"{queries[0]} {number}", "server", "main", ()) for number in numbers]
    yield "add", [_timed(add, [item])[1] for item in new]
    yield "delete", [_timed(collection.delete, [str(number)])[1] for number in numbers]
    client.close()


def _rank_bm25(
    directory: Path, items: Sequence[Item], queries: Sequence[str]
) -> Iterator[tuple[str, list[float]]]:
    del directory  # it keeps nothing
    from rank_bm25 import BM25Okapi  # only this engine's

    corpus = [tokenize(item.text) for item in items]
    index = BM25Okapi(corpus)

    def search(query: str, kind: str, share: float) -> int:
        del kind, share
        scores = index.get_scores(tokenize(query))
        return len(np.argpartition(-scores, 100)[:100])

    yield "search", [_timed(search, query, "", 1.0)[1] for query in queries]
    for operation in ("add", "delete"):
        yield operation, [_timed(BM25Okapi, corpus)[1] for _ in range(REBUILDS)]


def _fts5(
    directory: Path, items: Sequence[Item], queries: Sequence[str]
) -> Iterator[tuple[str, list[float]]]:
    connection = sqlite3.connect(directory / "fts5.db", isolation_level=None)
    connection.executescript(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
        "CREATE TABLE chunks (seq INTEGER PRIMARY KEY, device TEXT, agent TEXT, time REAL);"
        "CREATE TABLE mentions (name TEXT, seq INTEGER, PRIMARY KEY (name, seq)) WITHOUT ROWID;"
        "CREATE VIRTUAL TABLE lexical USING fts5 (body, tokenize = 'ascii', content = '');"
    )

    def add(some: Sequence[Item]) -> None:
        connection.execute("BEGIN")
        for item in some:
            row = (item.number, item.device, item.agent, item.number)
            connection.execute("INSERT INTO chunks VALUES (?, ?, ?, ?)", row)
            connection.executemany(
                "INSERT INTO mentions VALUES (?, ?)",
                [(name, item.number) for name in item.entities],
            )
            connection.execute(
                "INSERT INTO lexical (rowid, body) VALUES (?, ?)",
                (item.number, " ".join(tokenize(item.text))),
            )
        connection.execute("COMMIT")

    def delete(item: Item) -> None:
        connection.execute("BEGIN")
        connection.execute("DELETE FROM chunks WHERE seq = ?", (item.number,))
        connection.execute(
            "INSERT INTO lexical (lexical, rowid, body) VALUES ('delete', ?, ?)",
            (item.number, " ".join(tokenize(item.text))),
        )
        connection.execute("COMMIT")

    def search(query: str, kind: str, share: float) -> int:
        condition, value = {
            "time": ("c.time <= ?", _until(share, items)),
            "entity": ("c.seq IN (SELECT seq FROM mentions WHERE name = ?)", _entity(share)),
            "identity": ("? IN (c.device, c.agent)", DEVICES.get(share, AGENT)),
        }.get(kind, ("?", True))
        terms = " OR ".join(f'"{term}"' for term in tokenize(query))
        rows = connection.execute(
            "SELECT c.seq FROM lexical JOIN chunks c ON c.seq = lexical.rowid"  # noqa: S608  # our own conditions
            f" WHERE lexical MATCH ? AND {condition} ORDER BY rank LIMIT 100",
            (terms, value),
        )
        return len(rows.fetchall())

    for start in range(0, len(items), 1000):
        add(items[start : start + 1000])
    yield from _searches(search, queries)
    numbers = range(len(items), len(items) + CHANGES)
    new = [Item(number, f"{queries[0]} {number}", "server", "main", ()) for number in numbers]
    yield "add", [_timed(add, [item])[1] for item in new]
    yield "delete", [_timed(delete, item)[1] for item in new]
    connection.close()


def _searches(search: Search, queries: Sequence[str]) -> Iterator[tuple[str, list[float]]]:
    yield "search", [_timed(search, query, "", 1.0)[1] for query in queries]
    for kind in ("identity", "time", "entity"):
        for share in SHARES:
            samples = []
            for query in queries:
                hits, seconds = _timed(search, query, kind, share)
                assert hits, f"no hit under the filter by {kind}"
                samples.append(seconds)
            yield f"{kind} {share:.1%}", samples


def _timed(call: Callable[..., Any], *arguments: object) -> tuple[Any, float]:
    started = time.perf_counter()
    result = call(*arguments)
    return result, time.perf_counter() - started


def _event(item: Item) -> NewContext:
    return NewContext(
        context_type=ContextType.EVENT,
        title="",
        text=item.text,
        entities=item.entities,
        event_time=float(item.number),
    )


def _drain(library: Library) -> None:
    while library.indexer.step():
        pass


def _until(share: float, items: Sequence[Item]) -> float:
    """The time of the last of the oldest items that are such a share."""
    return max(share * len(items) - 1, 0.0)


def _entity(share: float) -> str:
    return f"entity{round(share * 1000)}"


@cache
def _directions() -> NDArray[np.float64]:
    random = np.random.default_rng(1).standard_normal((DIRECTIONS, DIMENSIONS))
    return np.asarray(random / np.linalg.norm(random, axis=1, keepdims=True))


@cache
def _bounds() -> NDArray[np.float64]:
    """Where each word's part of 0..1 ends, by Zipf's law."""
    weights = 1 / np.arange(1, VOCABULARY + 1)
    return np.asarray(np.cumsum(weights) / weights.sum())


def _text(chance: np.random.Generator, words: int) -> str:
    drawn = np.searchsorted(_bounds(), chance.random(words))
    return " ".join(f"w{rank}" for rank in drawn)


def _report(engine: str, operation: str, chunks: int, samples: Sequence[float]) -> Report:
    milliseconds = [1000 * sample for sample in samples]
    p50, p95 = statistics.median(milliseconds), float(np.percentile(milliseconds, 95))
    return Report(engine, operation, chunks, round(p50, 2), round(p95, 2))


def _print_table(reports: Sequence[Report], sizes: Sequence[int]) -> None:
    print(f"{'ms, p50 / p95':26}" + "".join(f"{size:>18,}" for size in sizes))
    figures = {(one.engine, one.operation, one.chunks): one for one in reports}
    for engine, operation in dict.fromkeys((one.engine, one.operation) for one in reports):
        row = [figures[engine, operation, size] for size in sizes]
        cells = "".join(f"{f'{one.p50:.1f} / {one.p95:.1f}':>18}" for one in row)
        print(f"{engine:10}{operation:16}{cells}")


if __name__ == "__main__":
    main()

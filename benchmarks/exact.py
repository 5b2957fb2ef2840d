"""From how many passages on asking ChromaDB is cheaper than comparing every vector.

    python -m benchmarks.exact [--sizes 1000,2000,5000,20000,50000]

Both ways of `SearchEngine.nearest` in turns, on one library that grows: all vectors of the record
compared, and Chroma asked, whose neighbours are then scored truly. Random vectors around 200
centres, 384 dimensions; the filters let every tenth and every hundredth document through.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from storage.contexts.contexts import ContextRepository
from storage.contexts.filters import Selection, compile_filter
from storage.contexts.ingestion import PreparedChunk
from storage.index.embedders.minilm import DIMENSIONS, MiniLMEmbedder
from storage.index.embedding_models import Embedding, store_vector
from storage.library import Library
from storage.models import Identity, NewContext, SearchFilter
from storage.retrieval import search

Floats = NDArray[np.float64]
Vectors = NDArray[np.float32]

CHUNKS = 20
"""Of a document."""

QUERIES = 40

FILTERS = {
    "all": SearchFilter(),
    "10 %": SearchFilter(raw_types=("tenth", "hundredth")),
    "1 %": SearchFilter(raw_types=("hundredth",)),
}


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="Exact comparison beside ChromaDB.")
    parser.add_argument("--sizes", default="1000,2000,5000,20000,50000")
    sizes = [int(size) for size in parser.parse_args().sizes.split(",")]
    chance = np.random.default_rng(1)
    centres = chance.normal(size=(200, DIMENSIONS))
    with tempfile.TemporaryDirectory() as directory:
        library = Library(Path(directory), MiniLMEmbedder())
        stored = 0
        print("passages filter  exact CPU  wall   Chroma CPU  wall, ms; of the exact 100 found")
        for size in sizes:
            _grow(library, stored, size, centres, chance)
            stored = size
            queries = _around(centres, chance, QUERIES)
            for name, criteria in FILTERS.items():
                _compare(library, size, name, criteria, queries)
        library.close()


def _around(centres: Floats, chance: np.random.Generator, count: int) -> Vectors:
    rows = centres[chance.integers(len(centres), size=count)]
    rows = rows + chance.normal(size=rows.shape) * 1.2
    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _grow(
    library: Library, start: int, end: int, centres: Floats, chance: np.random.Generator
) -> None:
    contexts = ContextRepository(library.database)
    model = library.models.current()[0]
    for number in range(start // CHUNKS, end // CHUNKS):
        kind = "hundredth" if number % 100 == 0 else "tenth" if number % 10 == 0 else "rest"
        chunks = [PreparedChunk("", f"{number} {each}", 0, (), ()) for each in range(CHUNKS)]
        new = NewContext(title="", text="", raw_type=kind, raw_id=f"{number}")
        contexts.replace_document(Identity(), new, chunks)
    with library.database.write() as connection:
        seqs = [row[0] for row in connection.execute("SELECT chunk_seq FROM embed_queue")]
        for seq, vector in zip(seqs, _around(centres, chance, len(seqs)), strict=True):
            store_vector(connection, seq, Embedding(model.seq, vector))
    while library.indexer.step():
        pass


def _compare(
    library: Library, size: int, name: str, criteria: SearchFilter, queries: Vectors
) -> None:
    where = compile_filter(Identity(), criteria)
    model = library.models.current()[0]
    times: dict[int, list[tuple[float, float]]] = {0: [], sys.maxsize: []}
    shared = []
    for vector in queries:
        found = []
        for limit, measured in times.items():
            search.EXACT_LIMIT = limit
            with library.database.read() as connection:
                cpu, wall = time.process_time(), time.perf_counter()
                selection = Selection(connection, where)
                near = library.engine.nearest(
                    connection, Identity(), Embedding(model.seq, vector), selection
                )
                measured.append((time.process_time() - cpu, time.perf_counter() - wall))
            found.append(set(near))
        shared.append(len(found[0] & found[1]) / len(found[1]))
    asked, exact = (
        [1000 * statistics.median(column) for column in zip(*measured, strict=True)]
        for measured in times.values()
    )
    print(
        f"{size:8} {name:6} {exact[0]:9.2f} {exact[1]:6.2f} {asked[0]:11.2f} {asked[1]:6.2f}"
        f"   {statistics.fmean(shared):.3f}",
        flush=True,
    )


if __name__ == "__main__":
    main()

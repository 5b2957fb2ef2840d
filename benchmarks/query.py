"""What `query` adds to the search that it is made of, and what an answer of the cache costs.

    python -m benchmarks.query [--chunks 5000] [--queries 200] [--people 1000] [--json]

The data are those of `benchmarks.scale`, a tenth of them memories; the session has 100 entries of
the same words. Each query is asked in turn of `shelf.search` and of `shelf.ask`, then once more of
`shelf.ask` in the same words (`hit`) and in others with words that nothing has (`similar`), where
no entry has its words; `tool` is such a hit through the whole call path of the tool. `naming` is
the part of a query that looks for whom it names, among people with two names each and twice as many
relationships; every other query names one. CPU milliseconds of all threads of the process, median
and 95th percentile; `added` is the difference of each pair.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import anyio

from benchmarks.names import ENGLISH
from benchmarks.scale import HashEmbedder, Item, make_items, make_queries
from server.app import App, build
from server.settings import Settings
from storage.contexts.contexts import insert_whole
from storage.contexts.ingestion import prepare
from storage.database import View
from storage.index.lexical import UserIndex
from storage.library import Library, Shelf
from storage.memory.models import NewEntry
from storage.models import ContextType, Identity, NewContext, SearchFilter
from storage.people.models import NewEntity, NewRelationship
from storage.retrieval.entity_boost import find_named
from storage.retrieval.routing import UnifiedQuery
from tools.core.context import Origin, RequestContext

ANN = Identity(user_id="ann")
SESSION = "benchmark"
QUIET = "quiet"
"""A session without entries, as others would keep a query in other words from the cache."""

ENTRIES = 100
SEED = 3
MEMORIES = 10
"""One context in so many is a memory."""


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="What query adds to a search.")
    parser.add_argument("--chunks", type=int, default=5000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    queries = list(make_queries(arguments.queries))
    with tempfile.TemporaryDirectory(prefix="toolcrib-query-") as directory:
        report = run(Path(directory), arguments.chunks, arguments.people, queries)
    if arguments.json:
        print(json.dumps(report))
        return
    for name, (median, slow) in report.items():
        print(f"{name:8} {median:7.2f} ms, 95th percentile {slow:7.2f}")


def run(
    directory: Path, chunks: int, people: int, queries: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """Fills a library and measures; milliseconds, median and 95th percentile, by what was done."""
    with closing(Library(directory / "data", HashEmbedder())) as library:
        _fill(library, list(make_items(chunks)))
        shelf = library.shelf(ANN)
        _warm(shelf, queries)
        taken = dict(_measured(shelf, queries))
        taken["naming"] = list(_naming(library, shelf, people, queries))
    taken["added"] = [ask - one for ask, one in zip(taken["ask"], taken["search"], strict=True)]
    app = build(Settings(data_dir=directory / "app", root=directory))
    with closing(app.library):
        taken["tool"] = anyio.run(_through_the_tool, app, len(queries))
    return {name: _summed_up(milliseconds) for name, milliseconds in taken.items()}


def _measured(shelf: Shelf, queries: Sequence[str]) -> Iterator[tuple[str, list[float]]]:
    search, ask, hit, similar = ([] for _ in range(4))
    for query in queries:
        search.append(_cpu(partial(shelf.search, query, SearchFilter(), 5)))
        ask.append(_cpu(partial(shelf.ask, _unified(query))))
        hit.append(_cpu(partial(_cached, shelf, _unified(query))))
        shelf.ask(_unified(query, QUIET))
        similar.append(_cpu(partial(_cached, shelf, _unified(f"The {query}?", QUIET))))
    yield from (("search", search), ("ask", ask), ("hit", hit), ("similar", similar))


def _naming(library: Library, shelf: Shelf, people: int, queries: Sequence[str]) -> Iterator[float]:
    names = [f"{first} {last}" for first, last in itertools.product(*map(str.split, ENGLISH))]
    chance = random.Random(SEED)  # noqa: S311  # the same people each time, no secret
    names = chance.sample(names, people)
    for number, name in enumerate(names):
        shelf.people.save_entity(NewEntity(name=name, aliases=(f"{name.split()[0]}{number}",)))
    for source, target in (chance.sample(names, 2) for _ in range(2 * people)):
        shelf.people.relate(NewRelationship(source=source, relation="knows", target=target))
    while library.indexer.step():
        pass
    for number, query in enumerate((*queries[:20], *queries)):
        asked = f"{names[number % people]} {query}" if number % 2 else query
        with library.database.read() as connection:
            index = UserIndex(connection, ANN.user_id)
            taken = _cpu(partial(find_named, connection, ANN, asked, index))
        if number >= 20:  # noqa: PLR2004  # those before warm it up
            yield taken


async def _through_the_tool(app: App, calls: int) -> list[float]:
    """A hit through validation, storage, formatting and the record, as a client has it."""
    context = RequestContext(Origin(ANN, session_id=SESSION))
    await app.manager.execute("add_document", {"text": "Heron " * 100, "title": "H"}, context)
    while app.library.indexer.step():
        pass
    taken = []
    for _ in range(calls + 1):
        started = time.process_time()
        result = await app.manager.execute("query", {"query": "heron"}, context)
        taken.append((time.process_time() - started) * 1000)
        assert not result.is_error, result.text
    assert "cached" in result.structured, result.structured
    return taken[1:]


def _fill(library: Library, items: Sequence[Item]) -> None:
    with library.database.write() as connection:
        for item in items:
            is_memory = item.number % MEMORIES == 0
            new = NewContext(
                context_type=ContextType.KNOWLEDGE,
                title="",
                text=item.text,
                event_time=float(item.number),
                memory_layer=4 if is_memory else 0,
            )
            insert_whole(View(connection, ANN), new, prepare(new), float(item.number))
    while library.indexer.step():
        pass
    for number, item in enumerate(items[:ENTRIES]):
        library.entries.record(
            ANN,
            NewEntry(
                session_id=SESSION,
                kind="call",
                time=float(number),
                action="read_file",
                said=item.text,
            ),
        )


def _warm(shelf: Shelf, queries: Sequence[str]) -> None:
    for query in queries[:20]:
        shelf.search(query, SearchFilter(), 5)
        shelf.ask(_unified(f"{query} warm"))
    gc.collect()


def _unified(query: str, session_id: str = SESSION) -> UnifiedQuery:
    return UnifiedQuery(text=query, top_k=5, session_id=session_id)


def _cached(shelf: Shelf, query: UnifiedQuery) -> None:
    assert shelf.ask(query).cached, query.text


def _cpu(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return (time.process_time() - started) * 1000


def _summed_up(milliseconds: Sequence[float]) -> tuple[float, float]:
    return statistics.median(milliseconds), statistics.quantiles(milliseconds, n=20)[-1]


if __name__ == "__main__":
    main()

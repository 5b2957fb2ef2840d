"""What one client waits for a file while others search: one server over HTTP, in a process.

    python -m benchmarks.crowd [--clients N] [--seconds N] [--documents N]

Every searching client asks again as soon as it is answered; each question is new, so that no vector
of it is kept. The reading client reads one small file at a time, alone first, then beside them.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from pathlib import Path

import anyio
from anyio.to_process import run_sync
from mcp import Client

from benchmarks.conformance import served

WORDS = [
    "river",
    "bank",
    "heron",
    "boat",
    "court",
    "judge",
    "tax",
    "music",
    "dance",
    "code",
    "wing",
    "nest",
    "tide",
    "reed",
    "stone",
    "bridge",
    "market",
    "baker",
    "flour",
    "oven",
    "winter",
    "frost",
    "lamp",
    "paper",
    "ink",
    "letter",
    "harbour",
    "crane",
    "rope",
    "sail",
]


def main() -> None:
    """Prints how long reads and searches take."""
    parser = argparse.ArgumentParser(description="Reads beside searches.")
    parser.add_argument("--clients", type=int, default=40, help="that search")
    parser.add_argument("--seconds", type=float, default=15.0, help="of each phase")
    parser.add_argument("--documents", type=int, default=60)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory, "root")
        root.mkdir()
        root.joinpath("note.txt").write_text("The heron waits.\n", encoding="utf-8")
        with served("functions", None, Path(directory)) as url:
            anyio.run(_measure, url, arguments.clients, arguments.seconds, arguments.documents)


async def _measure(url: str, clients: int, seconds: float, documents: int) -> None:
    chance = random.Random(2)  # noqa: S311  # texts, not secrets
    async with Client(url) as client:
        began = time.perf_counter()
        for number in range(documents):
            text = " ".join(chance.choices(WORDS, k=120))
            document = {"text": text, "title": f"d{number}"}
            added = await client.call_tool("add_document", document)
            assert not added.is_error, added.content
        while "chunks embedded" in str(await client.call_tool("query", {"query": "heron"})):  # noqa: ASYNC110  # another process embeds
            await anyio.sleep(0.2)
        print(
            f"{documents} documents were stored and embedded in {time.perf_counter() - began:.1f} s"
        )
        _print("read_file alone", await _reads(client, seconds / 3))
        alone = await _searches(url, 1, seconds / 3)
        _print("query alone", alone)
        found: list[float] = []
        reads: list[float] = []
        async with anyio.create_task_group() as tasks:

            async def search() -> None:  # another process: its work is not the reader's wait
                found.extend(await run_sync(_run_searches, url, clients, seconds + 5))

            tasks.start_soon(search)
            await anyio.sleep(4)
            reads = await _reads(client, seconds)
        _print(f"read_file beside {clients}", reads)
        _print(f"query of {clients}", found)
        print(f"{len(found) / (seconds + 5):.1f} queries a second")


async def _answer(client: Client) -> str:
    return str((await client.call_tool("query", {"query": "heron"})).content)


async def _reads(client: Client, seconds: float) -> list[float]:
    took = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        answer = await client.call_tool("read_file", {"path": "note.txt"})
        took.append(time.perf_counter() - began)
        assert not answer.is_error, answer.content
        await anyio.sleep(0.02)
    return took


def _run_searches(url: str, clients: int, seconds: float) -> list[float]:
    return anyio.run(_searches, url, clients, seconds)


async def _searches(url: str, clients: int, seconds: float) -> list[float]:
    took: list[float] = []
    end = time.perf_counter() + seconds

    async def ask(seed: int) -> None:
        chance = random.Random(seed)  # noqa: S311  # questions, not secrets
        async with Client(url) as client:
            while time.perf_counter() < end:
                question = f"where is the {' '.join(chance.choices(WORDS, k=6))}?"
                began = time.perf_counter()
                await client.call_tool("query", {"query": question})
                took.append(time.perf_counter() - began)

    async with anyio.create_task_group() as tasks:
        for number in range(clients):
            tasks.start_soon(ask, number)
    return took


def _print(what: str, seconds: list[float]) -> None:
    p50, p95 = statistics.median(seconds), statistics.quantiles(seconds, n=20)[-1]
    print(f"{what}: p50 {1000 * p50:.0f} ms, p95 {1000 * p95:.0f} ms ({len(seconds)} calls)")


if __name__ == "__main__":
    main()

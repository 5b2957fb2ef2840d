"""What a worker adds to a call: one function, called in the server and in a worker, in turns.

    python -m benchmarks.function_files [--calls N] [--json]

Both go through the whole call path of the server. A start is measured from an empty pool to the
first result, a reload from the save of a changed file to the result of its new version.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio

from server.app import App, build
from server.settings.settings import FunctionSettings, Settings
from tools.conversion.function_to_mcp import FunctionToMCP

SOURCE = "def add_there(a: int, b: int) -> int:\n    return a + b  # {version}\n"
RELOADS = 5
ARGUMENTS = {"a": 1, "b": 2}


def add_here(a: int, b: int) -> int:
    """The same function in the server's own process."""
    return a + b


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="The cost of a call in a worker.")
    parser.add_argument("--calls", type=int, default=2_000, help="calls of each kind")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    logging.disable()
    with tempfile.TemporaryDirectory(prefix="toolcrib-functions-") as directory:
        report = anyio.run(measure, Path(directory), arguments.calls)
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        for name, milliseconds in report.items():
            print(f"{name.replace('_', ' '):36}{milliseconds:10.2f} ms")


async def measure(directory: Path, calls: int) -> dict[str, float]:
    """Medians in milliseconds.

    Args:
        directory: An empty one to work in.
        calls: How many of each kind.
    """
    file = directory / "functions" / "adding.py"
    file.parent.mkdir()
    file.write_text(SOURCE.format(version=0), encoding="utf-8")
    settings = Settings(
        data_dir=directory / "data",
        root=directory,
        functions=FunctionSettings(paths=(file.parent,)),
    )
    app = build(settings)
    app.registry.add(FunctionToMCP.convert(add_here))
    try:
        async with app.functions.running():
            start = await _timed(lambda: _call(app, "add_there"))
            here, there = [], []
            for _ in range(calls):
                here.append(await _timed(lambda: _call(app, "add_here")))
                there.append(await _timed(lambda: _call(app, "add_there")))
            reloads = []
            for version in range(1, RELOADS + 1):
                file.write_text(SOURCE.format(version=version), encoding="utf-8")
                reloads.append(await _timed(lambda: _call(app, "add_there")))
    finally:
        app.library.close()
    in_server, in_worker = statistics.median(here), statistics.median(there)
    return {
        "call_in_the_server": in_server,
        "call_in_a_worker": in_worker,
        "added_by_the_worker": in_worker - in_server,
        "start_with_the_first_call": start,
        "reload_with_the_next_call": statistics.median(reloads),
    }


async def _call(app: App, name: str) -> None:
    result = await app.manager.execute(name, ARGUMENTS, app.context)
    assert result.structured == {"result": 3}, result.text


async def _timed(act: Callable[[], Awaitable[Any]]) -> float:
    started = time.perf_counter()
    await act()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()

"""What the sandbox costs a read: read_file beside a naive tool, and Sandbox.read beside os.read.

    python -m benchmarks.files [--rounds N] [--json]

Both tools are called in turn by one manager on the same files, so that what else the machine does
meets both alike; the target is for the difference of a file of source code. A round is one call of
each; figures are medians, in microseconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.context import Origin, RequestContext
from tools.core.manager import SandboxToolManager
from tools.core.registry import ToolRegistry
from tools.core.spec import Effect, tool
from tools.files import read_file
from tools.sandbox.files.sandbox import Sandbox

TARGET = 60.0
"""Microseconds that read_file may take more than the naive tool, for a file of source code."""

LINE = "    total = sum(value for value in values if value)  # a line of code\n"
FILES = {"empty": 0, "source code, 4 kB": 57, "long, 100 kB": 1430}
"""Files by the number of their lines."""

WARM_UP = 200
"""Rounds that are not counted."""

MAX_BYTES = 10_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """One file, read in two ways; microseconds.

    Attributes:
        what: Which file, read by what.
        plain: Median of the naive way.
        ours: Median of ours.
        more: Median of the difference within a round.
    """

    what: str
    plain: float
    ours: float
    more: float


@tool(effects={Effect.READ})
def plain(path: str) -> str:
    """Reads a file, wherever it is.

    Args:
        path: The file.
    """
    with open(path, encoding="utf-8") as file:  # noqa: PTH123  # as plain as can be
        return file.read()


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description="What the sandbox costs a read.")
    parser.add_argument("--rounds", type=int, default=2000, help="calls of each")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        paths = _plant(home / "root" / "src" / "package")
        (home / "settings.toml").write_bytes(b"")
        library = Library(home / "data", MiniLMEmbedder())
        protected = (home / "data", home / "settings.toml")
        sandbox = Sandbox(home / "root", protected=protected)
        rows = asyncio.run(_calls(_manager(sandbox, library), paths, arguments.rounds))
        rows += _reads(sandbox, paths, arguments.rounds)
        library.close()
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(f"{'':40} {'plain':>8} {'ours':>8} {'more':>8}")
    for row in rows:
        print(f"{row.what:40} {row.plain:8.1f} {row.ours:8.1f} {row.more:+8.1f}")
    print(f"Target: read_file of source code at most {TARGET:g} µs more.")


def _plant(directory: Path) -> dict[str, Path]:
    directory.mkdir(parents=True)
    paths = {}
    for number, (what, lines) in enumerate(FILES.items()):
        paths[what] = directory / f"module_{number}.py"
        paths[what].write_text(LINE * lines)
    return paths


def _manager(sandbox: Sandbox, library: Library) -> SandboxToolManager:
    registry = ToolRegistry()
    for function in (plain, read_file):
        registry.add(FunctionToMCP.convert(function))
    return SandboxToolManager(registry, sandbox=sandbox, library=library, permissions=None)


async def _calls(manager: SandboxToolManager, paths: dict[str, Path], rounds: int) -> list[Row]:
    context = RequestContext(Origin(session_id="benchmark"))
    rows = []
    for what, path in paths.items():
        times: list[tuple[float, float]] = []
        for _ in range(WARM_UP + rounds):
            start = time.perf_counter()
            naive = await manager.execute("plain", {"path": str(path)}, context)
            between = time.perf_counter()
            ours = await manager.execute("read_file", {"file_path": str(path)}, context)
            times.append((between - start, time.perf_counter() - between))
            assert naive.structured["result"] == ours.structured["content"]
        rows.append(_row(f"read_file: {what}", times[WARM_UP:]))
    return rows


def _reads(sandbox: Sandbox, paths: dict[str, Path], rounds: int) -> list[Row]:
    rows = []
    for what, path in paths.items():
        naive = partial(_os_read, str(path))
        ours = partial(sandbox.read, str(path), max_bytes=MAX_BYTES)
        times = [(_timed(naive), _timed(ours)) for _ in range(WARM_UP + rounds)]
        rows.append(_row(f"Sandbox.read: {what}", times[WARM_UP:]))
    return rows


def _os_read(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, MAX_BYTES)
    finally:
        os.close(fd)


def _timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _row(what: str, times: list[tuple[float, float]]) -> Row:
    plains, ours = ([each[side] * 1e6 for each in times] for side in (0, 1))
    differences = [our - naive for naive, our in zip(plains, ours, strict=True)]
    return Row(what, *map(statistics.median, (plains, ours, differences)))


if __name__ == "__main__":
    main()

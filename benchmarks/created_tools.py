"""What a created tool costs: called warm, beside the same function in the server, in turns.

    python -m benchmarks.created_tools [--calls N]

Both go through the whole call path of the server. The other tool is called by the created one, and
directly.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from server.app import App, build
from server.settings.safety import PolicySettings
from server.settings.settings import Settings
from tools.conversion.function_to_mcp import FunctionToMCP

SOURCES = {
    "add_there": '''
def add_there(a: int, b: int) -> int:
    """Adds."""
    return a + b
''',
    "add_through": '''
async def add_through(a: int, b: int) -> int:
    """Has another tool add."""
    return await tools.add_here(a=a, b=b)
''',
}
ARGUMENTS = {"a": 1, "b": 2}


def add_here(a: int, b: int) -> int:
    """The same function in the server's own process."""
    return a + b


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="The cost of a created tool.")
    parser.add_argument("--calls", type=int, default=500, help="calls of each kind")
    arguments = parser.parse_args()
    logging.disable()
    with tempfile.TemporaryDirectory(prefix="toolcrib-created-") as directory:
        for name, milliseconds in anyio.run(measure, Path(directory), arguments.calls).items():
            print(f"{name:36}{milliseconds:10.2f} ms")


async def measure(directory: Path, calls: int) -> dict[str, float]:
    """Medians in milliseconds.

    Args:
        directory: An empty one to work in.
        calls: How many of each kind.
    """
    allowed = PolicySettings(allow=("create_tool",))
    app = build(Settings(data_dir=directory / "data", root=directory, policy=allowed))
    app.registry.add(FunctionToMCP.convert(add_here, source="function:benchmark"))
    async with app.running():
        for name, source in SOURCES.items():
            await _call(app, "create_tool", {"tool_name": name, "implementation": source})
        taken: dict[str, list[float]] = {name: [] for name in ("add_here", *SOURCES)}
        for _ in range(calls):
            for name, times in taken.items():
                times.append(await _call(app, name, ARGUMENTS))
    here, there, through = (statistics.median(times) for times in taken.values())
    return {
        "a function in the server": here,
        "a created tool, warm": there,
        "added by its process": there - here,
        "one that calls the function": through,
    }


async def _call(app: App, name: str, arguments: dict[str, Any]) -> float:
    """How many milliseconds a call takes."""
    started = time.perf_counter()
    result = await app.manager.execute(name, arguments, app.context)
    assert not result.is_error, result.text
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main()

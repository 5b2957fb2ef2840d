"""What a cell adds to a program: taking one that waits, a call from within, and its memory.

    python -m benchmarks.programs [--programs N] [--calls N] [--json]

The programs do nothing, or call a tool that does nothing: all that is measured is what we add.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio

from server.composition.safety import make_cells
from server.settings import Settings
from tools.core.context import RequestContext
from tools.core.result import ToolResult
from tools.functions.programs.cells import Cells
from tools.functions.workers.messages import Load

CALLS = """
import time
began = time.perf_counter()
for _ in range({calls}):
    await tools.nothing()
1000 * (time.perf_counter() - began) / {calls}
"""


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="The cost of a program in a cell.")
    parser.add_argument("--programs", type=int, default=20, help="programs that find one waiting")
    parser.add_argument("--calls", type=int, default=500, help="calls from within one program")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    logging.disable()
    with tempfile.TemporaryDirectory(prefix="toolcrib-programs-") as directory:
        report = anyio.run(measure, Path(directory), arguments.programs, arguments.calls)
    if arguments.json:
        print(json.dumps(report, indent=2))
    else:
        for name, value in report.items():
            print(f"{name.replace('_', ' '):36}{value:10.2f}")


async def measure(directory: Path, programs: int, calls: int) -> dict[str, float]:
    """Medians in milliseconds, and megabytes.

    Args:
        directory: An empty one to work in.
        programs: How many find a process that waits.
        calls: How many one program makes.
    """
    cells = make_cells(Settings(root=directory, data_dir=directory / "data"))
    try:
        first, _ = await _run(cells, "1")
        times = []
        memory = 0.0
        for _ in range(programs):
            memory = await _waiting(cells)
            times.append((await _run(cells, "1"))[0])
        _, call = await _run(cells, CALLS.format(calls=calls))
    finally:
        await cells.aclose()
    return {
        "the_first_program_ms": first,
        "a_program_ms": statistics.median(times),
        "a_call_from_within_ms": call,
        "a_process_that_waits_mb": memory,
    }


async def _run(cells: Cells, source: str) -> tuple[float, Any]:
    """How long a program takes until its answer is there, and what that is."""
    began = time.perf_counter()
    worker = await cells.take(Load("<program>", source, "program"), lambda _printed: None)
    message = await worker.call({}, RequestContext().granted(call=_nothing))
    took = 1000 * (time.perf_counter() - began)
    await worker.aclose()
    return took, message["structured"]["value"]


async def _nothing(*_call: object) -> ToolResult:
    return ToolResult({}, "")


async def _waiting(cells: Cells) -> float:
    """The memory of the process that waits, once it has nothing to do any more."""
    spare: Any = vars(cells)["_spare"]  # nobody else asks for it
    await vars(spare)["_started"].wait()
    await anyio.sleep(1)  # what it imports
    return sum(map(_resident, _below(vars(vars(spare)["_cell"])["_program"].pid)))


def _below(pid: int) -> Iterator[int]:
    """A process and its descendants."""
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _below(int(child))


def _resident(pid: int) -> float:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(each.split()[1]) for each in lines if each.startswith("Pss:")) / 1000


if __name__ == "__main__":
    main()

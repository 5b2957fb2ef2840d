"""What a server of one's own costs: Toolcrib's beside FastMCP's and the SDK's.

    python -m benchmarks.own_server [--starts N] [--calls N] [--json]

Each serves one function that returns its text, over stdio. The servers take turns, so that what
else the machine does meets all of them alike. A start is measured as `benchmarks.startup` does, in
both eras. Calls are made one after the other by a client of a few lines, whose time is the same for
each; a server's own is read from its clock (Linux only).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields

from benchmarks.startup import (
    ENVELOPED,
    ERAS,
    MODERN,
    SERVERS,
    cpu_seconds,
    open_conversation,
    receive,
    sample,
    send,
    served,
)

BLOCK = 50
"""Calls of one server before it is the next one's turn."""

COMMANDS = {
    "sdk": [sys.executable, str(SERVERS / "sdk_echo.py")],
    "toolcrib": [sys.executable, str(SERVERS / "own.py")],
    "fastmcp": [sys.executable, str(SERVERS / "fast.py")],
}
"""What starts each; the first is what the others are compared with."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians of one server.

    Attributes:
        start_ms: Wall time until its list of tools is there.
        start_cpu_ms: Its processor time until then.
        memory_mb: The peak of what was resident by then.
        call_ms: Wall time of a call.
        call_cpu_ms: Its processor time for a call.
    """

    start_ms: float
    start_cpu_ms: float
    memory_mb: float
    call_ms: float
    call_cpu_ms: float


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="What a server of one's own costs.")
    parser.add_argument("--starts", type=int, default=5, help="of each server in each era")
    parser.add_argument("--calls", type=int, default=1_000, help="of each server")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolcrib-own-server-") as directory:
        os.environ["PYTHONPYCACHEPREFIX"] = directory  # as an installation keeps its bytecode
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        costs = measure(COMMANDS, arguments.starts, arguments.calls)
    if arguments.json:
        print(json.dumps({name: asdict(cost) for name, cost in costs.items()}, indent=2))
    else:
        _print_table(costs)


def measure(commands: Mapping[str, Sequence[str]], starts: int, calls: int) -> dict[str, Cost]:
    """What each server costs.

    Args:
        commands: What starts each.
        starts: Of each in each era, after one that is not counted.
        calls: Of each, after a block that is not counted.
    """
    begun = _starts(commands, starts)
    called = _calls(commands, calls)
    return {name: Cost(*begun[name], *called[name]) for name in commands}


def _starts(commands: Mapping[str, Sequence[str]], starts: int) -> dict[str, list[float]]:
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
    for turn in range(1 + starts):
        for era in ERAS:
            for name, command in commands.items():
                one = sample(command, era)
                if turn:  # the first one compiles
                    taken[name].append((one.wall_ms, one.cpu_seconds * 1000, one.memory_mb))
    return {name: _medians(samples) for name, samples in taken.items()}


def _calls(commands: Mapping[str, Sequence[str]], calls: int) -> dict[str, list[float]]:
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    with ExitStack() as stack:
        processes = {
            name: stack.enter_context(served(command, subprocess.DEVNULL, dict(os.environ)))
            for name, command in commands.items()
        }
        for process in processes.values():
            open_conversation(process, MODERN)
        for turn in range(1 + -(-calls // BLOCK)):
            for name, process in processes.items():
                took = _block(process)
                if turn:  # the first one warms up
                    taken[name].append(took)
    return {name: _medians(samples) for name, samples in taken.items()}


def _block(process: subprocess.Popen[bytes]) -> tuple[float, float]:
    """Milliseconds of a call, by the wall's clock and by that of the server."""
    params = {**ENVELOPED, "name": "echo", "arguments": {"text": "hello"}}
    began, busy = time.perf_counter(), cpu_seconds(process.pid)
    for number in range(BLOCK):
        send(process, id=f"call {number}", method="tools/call", params=params)
        result = receive(process)["result"]
        assert result["content"][0]["text"] == "hello", result
    wall, cpu = time.perf_counter() - began, cpu_seconds(process.pid) - busy
    return wall / BLOCK * 1000, cpu / BLOCK * 1000


def _medians(samples: Sequence[Sequence[float]]) -> list[float]:
    """The median of each column."""
    return [statistics.median(column) for column in zip(*samples, strict=True)]


def _print_table(costs: Mapping[str, Cost]) -> None:
    names = [field.name for field in fields(Cost)]
    print(f"{'':10}" + "".join(f"{name:>16}" for name in names))
    base = costs[next(iter(costs))]
    for server, cost in costs.items():
        cells = (
            f"{getattr(cost, name):.2f} ({getattr(cost, name) / getattr(base, name):.2f})"
            for name in names
        )
        print(f"{server:10}" + "".join(f"{cell:>16}" for cell in cells))
    print("In brackets: times the SDK's own server.")


if __name__ == "__main__":
    main()

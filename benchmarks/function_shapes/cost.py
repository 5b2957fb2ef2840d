"""CPU time of converting functions and of calling tools, in a process of its own each time.

Run as a module, it is that process: `python -m benchmarks.function_shapes.cost SYSTEM`.
"""

from __future__ import annotations

import cProfile
import gc
import json
import logging
import pstats
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Self

import anyio
from mcp import Client

from benchmarks.function_shapes.shape import Options, Served
from benchmarks.function_shapes.systems import System, opened
from benchmarks.function_shapes.workload import CALLS, distinct_functions

CONVERTED = 1_000
CALLED = 1_000
WARM = 100
"""Functions converted and calls made before the clock is read."""

OURS, REFERENCE = "Toolcrib", "FastMCP"
TARGETS = {"convert": 0.5, **dict.fromkeys(CALLS, 1.0)}
"""How many times the reference's CPU each part of ours may take."""

Costs = Mapping[str, Mapping[str, float]]
"""Milliseconds of CPU by part, by system: of all conversions, and of one call of each tool."""


def measure(systems: Sequence[str], rounds: int) -> Costs:
    """Medians over so many rounds, in each of which the systems take turns."""
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name in systems:
            taken[name].append(_in_a_process(name))
    return {
        name: {part: statistics.median(each[part] for each in samples) for part in TARGETS}
        for name, samples in taken.items()
    }


def print_costs(costs: Costs) -> None:
    """Prints a table with ratios and, where a target is missed, where our time goes."""
    labels = {"convert": f"{CONVERTED} conversions", **{call: f"call {call}" for call in CALLS}}
    print(f"{'CPU ms':20}" + "".join(f"{system:>18}" for system in costs) + f"{'allowed':>10}")
    for part, allowed in TARGETS.items():
        reference = costs[REFERENCE][part]
        figures = (f"{cost[part]:.3f} ({cost[part] / reference:.2f})" for cost in costs.values())
        columns = "".join(f"{figure:>18}" for figure in figures)
        print(f"{labels[part]:20}{columns}{allowed:>10}")
    print(f"In brackets: times {REFERENCE}'s.")
    missed = [
        part for part, most in TARGETS.items() if costs[OURS][part] > most * costs[REFERENCE][part]
    ]
    if missed:
        print(f"{OURS} takes more than it may for: {', '.join(labels[part] for part in missed)}.")
        print(f"Where it goes: python -m benchmarks.function_shapes.cost {OURS} --profile")


def _in_a_process(system: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.function_shapes.cost", system]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    figures: dict[str, float] = json.loads(ran.stdout)
    return figures


def _main(name: str, *, profile: bool) -> None:
    logging.disable(logging.CRITICAL)
    profiler = cProfile.Profile() if profile else None
    with opened(name) as system:
        figures = {"convert": _conversion(system, profiler)}
        for call in CALLS:
            figures[call] = anyio.run(_call, system, call, profiler)
    if profiler is None:
        print(json.dumps(figures))
    else:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(60)


def _conversion(system: System, profiler: cProfile.Profile | None) -> float:
    functions = distinct_functions(WARM + CONVERTED)
    for function in functions[:WARM]:
        system.convert(function)
    gc.collect()
    with _Clock(profiler) as clock:
        for function in functions[WARM:]:
            system.convert(function)
    return clock.milliseconds


async def _call(system: System, name: str, profiler: cProfile.Profile | None) -> float:
    function, arguments = CALLS[name]
    served: Served = system.serve(function, Options())
    async with Client(served, mode="legacy") as client:
        await client.list_tools()
        for _ in range(WARM):
            result = await client.call_tool(name, arguments)
        assert not result.is_error, result.content
        gc.collect()
        with _Clock(profiler) as clock:
            for _ in range(CALLED):
                await client.call_tool(name, arguments)
    return clock.milliseconds / CALLED


class _Clock:
    """CPU time of this process, all its threads, in a `with` block."""

    def __init__(self, profiler: cProfile.Profile | None) -> None:
        self._profiler = profiler
        self.milliseconds = 0.0

    def __enter__(self) -> Self:
        if self._profiler:
            self._profiler.enable()
        self._started = time.process_time()
        return self

    def __exit__(self, *_error: object) -> None:
        self.milliseconds = (time.process_time() - self._started) * 1000
        if self._profiler:
            self._profiler.disable()


if __name__ == "__main__":
    _main(sys.argv[1], profile="--profile" in sys.argv[2:])

"""What it costs a long recipe that what its operators leave is kept: processor time.

    python -m benchmarks.checkpoints --environment DIR [--rows N] [--rounds N]

The recipe of `benchmarks.recipes` runs on its rows in a warm worker, in turns keeping nothing and
keeping what each of its five operators leaves; a run keeps something once in ten seconds at most.
Counted are the server and its worker, which on Linux alone can be asked. The environment is the
data directory that `toolcrib data setup` was run for.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import tempfile
from pathlib import Path

import anyio

from benchmarks.recipes import KEYS, plan_of, prepared
from server.app import App
from tools.data.running.workers import workers_of

AFTER = {"nothing kept": 1e9, "each operator kept": 0.0}
"""By what it is called, the seconds of work after which something is kept."""


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="Recipes with and without checkpoints.")
    parser.add_argument("--environment", type=Path, required=True, help="a data directory")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    logging.disable()
    with tempfile.TemporaryDirectory(prefix="toolcrib-checkpoints-") as directory:
        environment = arguments.environment.resolve() / "data-juicer"
        report = anyio.run(measure, Path(directory), environment, arguments.rows, arguments.rounds)
    for name, seconds in report.items():
        print(f"{name:24}{seconds:8.2f}")


async def measure(directory: Path, environment: Path, rows: int, rounds: int) -> dict[str, float]:
    """Medians of processor seconds.

    Args:
        directory: An empty one to work in.
        environment: Where Data-Juicer is.
        rows: How many are read.
        rounds: How often each way is run.
    """
    app = prepared(directory, environment, rows)
    plan = app.settings.root / "plan.yaml"
    plan.write_text(plan_of("direct", KEYS["direct"]).to_yaml(), encoding="utf-8")
    seconds: dict[str, list[float]] = {name: [] for name in AFTER}
    async with app.running():
        checkpoints = (await workers_of(app.machine)).checkpoints
        await _run(app)  # it starts the worker too
        for _ in range(rounds):
            for name, checkpoints.after in AFTER.items():
                before = _processor(os.getpid())
                await _run(app)
                seconds[name].append(_processor(os.getpid()) - before)
    return {name: statistics.median(taken) for name, taken in seconds.items()}


async def _run(app: App) -> None:
    result = await app.manager.execute("apply_recipe", {"plan_path": "plan.yaml"}, app.context)
    assert not result.is_error, result.text


def _processor(pid: int) -> float:
    """Seconds that a process and those that it has started have computed."""
    process = Path(f"/proc/{pid}")
    fields = (process / "stat").read_text().rsplit(")", 1)[1].split()
    seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    for task in (process / "task").iterdir():
        seconds += sum(_processor(int(child)) for child in (task / "children").read_text().split())
    return seconds


if __name__ == "__main__":
    main()

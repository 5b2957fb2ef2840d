"""What it costs to run a program confined, beside a plain `anyio.run_process`.

    python -m benchmarks.confinement [--runs N] [--json]

All run `bash -c true` to its end, in turns, so that what else the machine does meets all alike: the
launcher alone, and whole runs in a repository, with their private directory and the look at what is
closed to programs, at each level that works here. The first start also starts the zygote, and is
told apart. Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import anyio

from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.processes.confinement.plan import find_visible_paths
from tools.sandbox.processes.kernel.landlock import landlock_abi
from tools.sandbox.processes.launching.launcher import Launcher
from tools.sandbox.processes.models import Command, LandlockRules, Limits, Prepared, SandboxMode
from tools.sandbox.processes.processes import Processes
from tools.sandbox.web.guard import AddressGuard

TARGET = 1.2
"""How many times a plain start a confined one may take."""

_NOWHERE = "/nothing/here"

ARGV = ("/bin/bash", "-c", "true")


@dataclass(frozen=True, slots=True)
class Report:
    """One way of starting a program.

    Attributes:
        way: Its name.
        median_ms: Milliseconds from the start until the end is known.
        ratio: The median over that of a plain start.
    """

    way: str
    median_ms: float
    ratio: float


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="The cost of starting a program confined.")
    parser.add_argument("--runs", type=int, default=300, help="starts of each kind")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    # Not in /tmp: the mount point of the root would be made in the program's own, on the disk.
    where = "/var/tmp"  # noqa: S108  # a new private directory in it
    with tempfile.TemporaryDirectory(prefix="toolcrib-confinement-", dir=where) as directory:
        subprocess.run(["git", "init", "--quiet", directory], check=True)  # noqa: S607  # wherever it is
        first, reports = anyio.run(measure, Path(directory), arguments.runs)
    if arguments.json:
        print(json.dumps({"first_ms": first, "ways": [asdict(one) for one in reports]}))
        return
    for one in reports:
        print(f"{one.way:24}{one.median_ms:8.2f} ms{one.ratio:8.2f}")
    print(f"The first start takes {first:.0f} ms. Confined may be {TARGET} times plain.")


async def measure(root: Path, runs: int) -> tuple[float, list[Report]]:
    """Starts the program each way in turn.

    Args:
        root: Where it may write.
        runs: How often each way.

    Returns:
        Milliseconds of the first start, and a report of each way.
    """
    rules = LandlockRules(
        readable=("/proc", *find_visible_paths([]).readable), writable=(str(root),)
    )
    unconfined = Prepared(argv=ARGV, cwd=str(root), environment={"PATH": "/usr/bin:/bin"})
    confined = Prepared(
        argv=ARGV, cwd=str(root), environment=unconfined.environment, landlock=rules
    )
    launcher = Launcher()
    levels = [_processes(root, path) for path in (_NOWHERE, os.defpath)]
    try:
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "plain": lambda: anyio.run_process(ARGV, cwd=root),
            "launcher, unconfined": lambda: _run(launcher, unconfined),
        }
        if landlock_abi():
            ways["launcher, confined"] = lambda: _run(launcher, confined)
        for processes in levels:
            ways[f"whole run, {await processes.level()}"] = partial(_run_whole, processes)
        first = await _timed(lambda: _run(launcher, unconfined))
        return first, _reports(await _samples(ways, runs))
    finally:
        await launcher.aclose()
        for processes in levels:
            await processes.aclose()


def _processes(root: Path, search_path: str) -> Processes:
    """What runs programs; where no bubblewrap is found, Landlock confines them."""
    return Processes(
        root=root,
        protected=(),
        read_only=(),
        mode=SandboxMode.REQUIRED,
        limits=Limits(),
        environment={"PATH": search_path},
        readable=(),
        network=(),
        sandbox=Sandbox(root),
        git_config=bytes,
        data_dir=root.with_name(f"{root.name}-data"),
        guard=lambda: AddressGuard(()),
    )


async def _run_whole(processes: Processes) -> None:
    program = await processes.start(Command(argv=ARGV, session=("benchmark",)))
    code = await program.wait()
    await program.aclose()
    assert code == 0


async def _samples(
    ways: Mapping[str, Callable[[], Awaitable[object]]], runs: int
) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(runs):
        for way, start in ways.items():
            samples[way].append(await _timed(start))
    return samples


def _reports(samples: Mapping[str, list[float]]) -> list[Report]:
    medians = {way: statistics.median(taken) for way, taken in samples.items()}
    return [Report(way, median, median / medians["plain"]) for way, median in medians.items()]


async def _timed(start: Callable[[], Awaitable[object]]) -> float:
    before = time.perf_counter()
    await start()
    return (time.perf_counter() - before) * 1000


async def _run(launcher: Launcher, prepared: Prepared) -> None:
    running = await launcher.start(prepared)
    code = await running.wait()
    await running.aclose()
    assert code == 0


if __name__ == "__main__":
    main()

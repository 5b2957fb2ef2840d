"""What a start costs: until the first reply, and until the first list of tools.

Toolcrib is compared with a bare server of the SDK and with FastMCP.

    python -m benchmarks.startup [--runs N] [--json]

The servers take turns, so that what else the machine does meets all of them alike. The client is
three lines of JSON written by hand; what it costs is not in the figures, nor is a server's exit:
its clock and its peak of memory are read from outside when its list of tools arrives (Linux only).
Modules are counted in a start of their own, which `-X importtime` makes slower, and which compiles
all that is imported into a directory of the benchmark's: whether the environment keeps bytecode, as
an installation does, so changes nothing.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO

import mcp_types as types

HEAVY = (
    "charset_normalizer",
    "chromadb",
    "ddgs",
    "docx",
    "lxml",
    "numpy",
    "onnxruntime",
    "pypdf",
    "rapidfuzz",
    "rich",
    "snowballstemmer",
    "tokenizers",
    "trafilatura",
    "uvicorn",
)
"""What no list of tools needs."""

TARGET = 1.25
"""How many times the bare server's CPU time Toolcrib may take until it lists its tools."""

FIRST_TARGET = 0.5
"""How many times the bare server's time Toolcrib may take until its first reply."""

SERVERS = Path(__file__).with_name("servers")
CLIENT = {"name": "benchmark", "version": "1"}
MODERN, LEGACY = "2026-07-28", "2025-11-25"
ERAS = (MODERN, LEGACY)
ENVELOPED: dict[str, Any] = {
    "_meta": {
        types.PROTOCOL_VERSION_META_KEY: MODERN,
        types.CLIENT_INFO_META_KEY: CLIENT,
        types.CLIENT_CAPABILITIES_META_KEY: {},
    }
}


@dataclass(frozen=True, slots=True)
class Sample:
    """One start until the list of tools; memory is the peak of what was resident.

    Attributes:
        first_ms: Wall time until the reply to `initialize` or `server/discover`.
        cpu_seconds: CPU time.
        wall_ms: Wall time.
        memory_mb: Memory.
    """

    first_ms: float
    cpu_seconds: float
    wall_ms: float
    memory_mb: float


@dataclass(frozen=True, slots=True)
class Report:
    """One server: medians over all starts, and what it had imported when it answered."""

    server: str
    median: Sample
    ratio: Sample
    modules: int
    heavy: list[str]


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="The cost of a start until the first reply.")
    parser.add_argument("--runs", type=int, default=5, help="starts of each server in each era")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolcrib-startup-") as directory:
        os.environ["PYTHONPYCACHEPREFIX"] = str(Path(directory, "bytecode"))
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        reports = measure(_commands(Path(directory)), arguments.runs)
    if arguments.json:
        print(json.dumps([asdict(report) for report in reports], indent=2))
    else:
        _print_table(reports)


def measure(commands: Mapping[str, Sequence[str]], runs: int) -> list[Report]:
    """Starts every server in turn, so many times in each era."""
    # This start also compiles what is not compiled yet, so it comes first.
    modules = {name: modules_at_reply(command) for name, command in commands.items()}
    samples: dict[str, list[Sample]] = {name: [] for name in commands}
    for _ in range(runs):
        for era in ERAS:
            for name, command in commands.items():
                samples[name].append(sample(command, era))
    medians = {name: _combined(statistics.median, *taken) for name, taken in samples.items()}
    return [
        Report(
            server=name,
            median=medians[name],
            ratio=_combined(lambda pair: pair[0] / pair[1], medians[name], medians["bare"]),
            modules=len(modules[name]),
            heavy=[package for package in HEAVY if package in modules[name]],
        )
        for name in commands
    ]


def sample(command: Sequence[str], era: str) -> Sample:
    """Starts a server, asks for its tools in one era, and looks at it when they arrive."""
    started = time.perf_counter()
    with served(command, subprocess.DEVNULL, dict(os.environ)) as process:
        open_conversation(process, era)
        first = time.perf_counter() - started
        _list_tools(process, era)
        wall = time.perf_counter() - started
        cpu = cpu_seconds(process.pid)
        return Sample(first * 1000, cpu, wall * 1000, _peak_mb(process.pid))


def modules_at_reply(command: Sequence[str]) -> set[str]:
    """The modules that a server has imported when its list of tools arrives."""
    environ = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    with tempfile.TemporaryFile() as log, served(command, log, environ) as process:
        open_conversation(process, MODERN)
        _list_tools(process, MODERN)
        log.seek(0)
        lines = log.read().decode().splitlines()
    return {line.rpartition("|")[2].strip() for line in lines if line.startswith("import time:")}


def _commands(directory: Path) -> dict[str, list[str]]:
    toolcrib = str(Path(sysconfig.get_path("scripts"), "toolcrib"))
    places = ["--root", str(directory), "--data-dir", str(directory / "data")]
    return {
        "bare": [sys.executable, str(SERVERS / "bare.py")],
        "toolcrib": [toolcrib, "serve", *places],
        "fastmcp": [sys.executable, str(SERVERS / "fast.py")],
    }


@contextmanager
def served(
    command: Sequence[str], log: BinaryIO | int, environ: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A server with its pipes; it has ended after the block."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environ
    ) as process:
        yield process  # leaving closes stdin, which ends the server, and waits for it


def open_conversation(process: subprocess.Popen[bytes], era: str) -> None:
    """Begins, as a client of that era does."""
    if era == MODERN:
        send(process, id=0, method="server/discover", params=ENVELOPED)
        receive(process)
    else:
        hello = {"protocolVersion": era, "capabilities": {}, "clientInfo": CLIENT}
        send(process, id=0, method="initialize", params=hello)
        receive(process)
        send(process, method="notifications/initialized")


def _list_tools(process: subprocess.Popen[bytes], era: str) -> None:
    params = ENVELOPED if era == MODERN else {}
    send(process, id=1, method="tools/list", params=params)
    assert receive(process)["result"]["tools"], "a server listed no tools"


def send(process: subprocess.Popen[bytes], **message: object) -> None:
    """Sends one message."""
    assert process.stdin is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


def receive(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The next message."""
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        raise SystemExit(f"{process.args!r} ended without a reply; run it to see why.")
    reply: dict[str, Any] = json.loads(line)
    return reply


def cpu_seconds(pid: int) -> float:
    """Processor time of a process until now."""
    # The process's own CPU clock in nanoseconds, by the formula of clock_getcpuclockid(3) on
    # Linux: /proc/PID/stat counts in hundredths of a second.
    return time.clock_gettime((~pid << 3) | 2)


def _peak_mb(pid: int) -> float:
    status = Path("/proc", str(pid), "status").read_text(encoding="ascii")
    kilobytes = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    return int(kilobytes) / 1024


def _combined(combine: Any, *samples: Sample) -> Sample:  # noqa: ANN401  # of floats, one a sample
    values = ([getattr(one, field.name) for one in samples] for field in fields(Sample))
    return Sample(*map(combine, values))


def _print_table(reports: Sequence[Report]) -> None:
    titles = "".join(f"{each:>16}" for each in ("first reply ms", "CPU s", "wall ms", "peak MB"))
    print(f"{'':10}{titles}{'modules':>9}  of the heavy ones")
    for one in reports:
        figures = (
            f"{one.median.first_ms:.0f} ({one.ratio.first_ms:.2f})",
            f"{one.median.cpu_seconds:.3f} ({one.ratio.cpu_seconds:.2f})",
            f"{one.median.wall_ms:.0f} ({one.ratio.wall_ms:.2f})",
            f"{one.median.memory_mb:.1f} ({one.ratio.memory_mb:.2f})",
        )
        columns = "".join(f"{figure:>16}" for figure in figures)
        print(f"{one.server:10}{columns}{one.modules:>9}  {', '.join(one.heavy) or 'none'}")
    print(
        f"In brackets: times the bare server's; Toolcrib's first reply may take {FIRST_TARGET} and "
        f"its CPU time {TARGET} times as long."
    )


if __name__ == "__main__":
    main()

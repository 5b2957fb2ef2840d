"""What of the official conformance suite passes: of functions, and of a server behind two proxies.

    python -m benchmarks.conformance [--everything DIR] [--node NODE] [--suite INDEX.JS] [--json]

The functions are those of `benchmarks/servers/everything.py` and `tasks.py`, which Toolcrib serves
as function files. DIR is `examples/servers/everything-server` of the MCP SDK for Python (or
MCP_EVERYTHING_SERVER says it): the server that the SDK itself is tested with, in both eras of the
protocol. Toolcrib and FastMCP's proxy stand before it, each with nothing else behind; without
--everything only the functions are asked. The suite is the npm package
`@modelcontextprotocol/conformance`, which speaks HTTP and needs Node 22; without --suite (or
MCP_CONFORMANCE_SUITE) `npx` fetches the version that --suite-version says. Only the scenarios that
a revision of the specification requires are counted, and apart from them those of the extension
for tasks.
"""

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

TASKS = "tasks"
REVISIONS = ("2025-11-25", "2026-07-28", TASKS)
"""Of the specification, and the extension for tasks (SEP-2663), which none of them requires."""

TASK_SCENARIOS = (
    *("tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields"),
    *("tasks-request-state-removal", "tasks-mrtr-input", "tasks-request-headers"),
    *("tasks-dispatch-and-envelope", "tasks-mrtr-composition", "tasks-required-task-error"),
)
"""All that the suite has but tasks-status-notifications, which asks nothing yet."""

VERSION = "0.2.0-alpha.12"
"""Of the suite: the one that knows both revisions."""

START_SECONDS = 30.0
SCENARIO_MS = 30_000

SERVERS = ("functions", "direct", "toolcrib", "fastmcp")
PROXY = Path(__file__).with_name("servers") / "fast_proxy.py"
FUNCTIONS = [Path(__file__).with_name("servers") / name for name in ("everything.py", "tasks.py")]

_OUTCOME = re.compile(r"^(?P<indent> *)(?P<mark>[✓✗]) (?P<name>[\w-]+)[ :]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Report:
    """What passes of one revision."""

    server: str
    revision: str
    passed: int
    total: int
    failed: list[str]


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="What of the conformance suite passes.")
    environ = os.environ
    parser.add_argument("--everything", default=environ.get("MCP_EVERYTHING_SERVER"), type=Path)
    parser.add_argument("--node", default="node", help="Node 22 or later")
    parser.add_argument("--suite", default=environ.get("MCP_CONFORMANCE_SUITE"))
    parser.add_argument("--suite-version", default=VERSION, help="what npx fetches")
    parser.add_argument("--server", action="append", choices=SERVERS)
    parser.add_argument("--revision", action="append", choices=REVISIONS)
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    arguments = parser.parse_args()
    possible = SERVERS if arguments.everything else SERVERS[:1]
    servers = arguments.server or possible
    if not set(servers) <= set(possible):
        parser.error("--everything is needed: the folder of the SDK's everything-server.")
    suite = [arguments.node, arguments.suite]
    if arguments.suite is None:
        npx = shutil.which("npx") or parser.error("--suite is needed where there is no npx.")
        suite = [npx, "--yes", f"@modelcontextprotocol/conformance@{arguments.suite_version}"]
    reports = measure(arguments.everything, suite, servers, arguments.revision or REVISIONS)
    if arguments.json:
        print(json.dumps([asdict(report) for report in reports], indent=2))
    else:
        _print_table(reports)


def measure(
    everything: Path | None, suite: Sequence[str], servers: Sequence[str], revisions: Sequence[str]
) -> list[Report]:
    """Asks each server everything that each revision requires."""
    reports = []
    with tempfile.TemporaryDirectory(prefix="toolcrib-conformance-") as directory:
        for server in servers:
            with served(server, everything, Path(directory)) as url:
                reports += [
                    run_tasks(server, suite, url)
                    if revision == TASKS
                    else run(server, suite, url, revision)
                    for revision in revisions
                ]
    return reports


def run(server: str, suite: Sequence[str], url: str, revision: str) -> Report:
    """Asks one server everything that one revision requires; without one, all that the suite asks.

    The suite knows since 0.2 what a revision requires.
    """
    required = ["--requirements", revision, "--timeout", str(SCENARIO_MS)] if revision else []
    options = ["--url", url, *required]
    done = subprocess.run([*suite, "server", *options], capture_output=True, text=True, check=False)
    return read_summary(server, revision, done.stdout)


def run_tasks(server: str, suite: Sequence[str], url: str) -> Report:
    """Asks one server what the scenarios of the extension for tasks ask."""
    command = [*suite, "server", "--url", url, "--timeout", str(SCENARIO_MS), "--scenario"]
    failed = [
        name
        for name in TASK_SCENARIOS
        if subprocess.run([*command, name], capture_output=True, check=False).returncode
    ]
    total = len(TASK_SCENARIOS)
    return Report(server, TASKS, total - len(failed), total, failed)


def read_summary(server: str, revision: str, output: str) -> Report:
    """What the suite says at the end of its output.

    The scenarios that it ran though the revision does not require them stand there once more,
    indented.
    """
    _, found, summary = output.partition("=== SUMMARY ===")
    if not found:
        raise SystemExit(f"The suite gave no summary for {server}: {output[-2_000:]}")
    outcomes = {each["name"]: each["mark"] for each in _OUTCOME.finditer(summary)}
    extra = {each["name"] for each in _OUTCOME.finditer(summary) if each["indent"]}
    failed = [name for name, mark in outcomes.items() if mark == "✗" and name not in extra]
    total = len(outcomes) - len(extra)
    return Report(server, revision, total - len(failed), total, failed)


@contextmanager
def served(server: str, everything: Path | None, directory: Path) -> Iterator[str]:
    """The address of a server."""
    with ExitStack() as stack:
        if server == "functions" or everything is None:
            yield stack.enter_context(_functions(directory))
            return
        port = free_port()
        command = [sys.executable, "-m", "mcp_everything_server", "--port", str(port)]
        stack.enter_context(listening(command, port, directory / "everything.log", cwd=everything))
        url = f"http://localhost:{port}/mcp"
        if server == "direct":
            yield url
            return
        front = free_port()
        command, environ = _proxy(server, url, front, directory)
        log = directory / f"{server}.log"
        stack.enter_context(listening(command, front, log, environ=environ))
        yield f"http://localhost:{front}/mcp"


@contextmanager
def _functions(directory: Path) -> Iterator[str]:
    """The address of a Toolcrib that serves the functions, in a folder that they may write to."""
    folder = directory / "functions"
    folder.mkdir()
    for each in FUNCTIONS:
        shutil.copy(each, folder)
    port = free_port()
    environ = _environ(directory, port) | {
        "TOOLCRIB_FUNCTIONS__PATHS": str(folder),
        "TOOLCRIB_POLICY__ALLOW": "test_*",
        "TOOLCRIB_SURFACE": "full",
    }
    with listening(toolcrib(), port, directory / "functions.log", environ=environ):
        yield f"http://localhost:{port}/mcp"


def toolcrib() -> list[str]:
    """The command that serves over HTTP."""
    return [str(Path(sysconfig.get_path("scripts"), "toolcrib")), "serve", "--transport", "http"]


def _environ(directory: Path, port: int) -> dict[str, str]:
    root = directory / "root"
    root.mkdir(exist_ok=True)
    return {
        **os.environ,
        "TOOLCRIB_HTTP__PORT": str(port),
        "TOOLCRIB_DATA_DIR": str(directory / "data"),
        "TOOLCRIB_ROOT": str(root),
    }


def _proxy(
    server: str, url: str, port: int, directory: Path
) -> tuple[list[str], Mapping[str, str]]:
    if server == "fastmcp":
        return [sys.executable, str(PROXY), url, str(port)], os.environ
    environ = _environ(directory, port) | {
        "TOOLCRIB_SERVERS": json.dumps({"every": {"url": url, "prefix": False}}),
        "TOOLCRIB_POLICY__ALLOW": "every__*",
        "TOOLCRIB_SURFACE": "lean,server:every",
    }
    return toolcrib(), environ


@contextmanager
def listening(
    command: Sequence[str],
    port: int,
    log: Path,
    *,
    cwd: Path | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a server until the block ends."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        try:
            _wait_for(process, port, log)
            yield process
        finally:
            process.terminate()
            process.wait()


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise SystemExit(f"{process.args!r} does not listen: {log.read_text()[-2_000:]}")


def free_port() -> int:
    """A port that no server listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _print_table(reports: Sequence[Report]) -> None:
    print(f"{'server':10}{'revision':12}{'passed':>8}  what fails")
    for one in reports:
        score = f"{one.passed}/{one.total}"
        print(f"{one.server:10}{one.revision:12}{score:>8}  {', '.join(one.failed) or 'nothing'}")


if __name__ == "__main__":
    main()

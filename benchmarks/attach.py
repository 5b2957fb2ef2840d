"""Measures the processes and memory of clients over stdio, each with its own Toolcrib or attached.

    python -m benchmarks.attach CONFIG [--call 'TOOL={"argument": 1}']...

CONFIG is a settings file with other servers. One client and then two connect and wait until the
servers are up; then each makes the calls, so that it uses those servers. Memory is the proportional
set size (PSS) of all processes, in MB of 1,000,000 bytes.
"""

import argparse
import json
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters

from server.clients.locations import command_path

SETTLE_SECONDS = 8.0  # for servers that are still loading


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="Processes and memory of clients over stdio.")
    parser.add_argument("config", type=Path)
    parser.add_argument("--call", action="append", default=[], help='TOOL={"argument": 1}')
    options = parser.parse_args()
    calls = {name: json.loads(said) for name, _, said in (c.partition("=") for c in options.call)}
    print(f"{'':28}  processes  helpers  MB (helpers)  first list, s")
    for attach in (False, True):
        with tempfile.TemporaryDirectory() as directory:
            anyio.run(measure, options.config.absolute(), calls, Path(directory), attach)


async def measure(
    config: Path, calls: Mapping[str, Mapping[str, Any]], place: Path, attach: bool
) -> None:
    """Prints what one client costs, and two."""
    (place / "root").mkdir()
    env = {key: value for key, value in os.environ.items() if not key.startswith("TOOLCRIB_")}
    env |= {
        "TOOLCRIB_CONFIG": str(config),
        "TOOLCRIB_DATA_DIR": str(place / "data"),
        "TOOLCRIB_ROOT": str(place / "root"),
        "TOOLCRIB_ATTACH": str(attach),
        "XDG_RUNTIME_DIR": str(place),
    }
    started = StdioServerParameters(command=str(command_path()), args=["serve"], env=env)
    async with AsyncExitStack() as stack:
        clients: list[Client] = []
        for count in (1, 2):
            began = time.monotonic()
            clients.append(await stack.enter_async_context(Client(started, mode="legacy")))
            await clients[-1].list_tools()
            took = time.monotonic() - began
            await anyio.sleep(SETTLE_SECONDS)
            label = f"{count} {'attached' if attach else 'alone'}"
            show(f"{label}, connected", place, took)
        for used, client in enumerate(clients, 1):
            for name, arguments in calls.items():
                result = await client.call_tool(name, dict(arguments))
                assert not result.is_error, result
            await anyio.sleep(SETTLE_SECONDS / 4)
            show(f"2 {'attached' if attach else 'alone'}, {used} used all", place)


def show(label: str, place: Path, took: float | None = None) -> None:
    """Prints a row."""
    sizes = {pid: pss(pid) for pid in processes(place)}
    helpers = [size for pid, size in sizes.items() if is_helper(pid)]
    shown = "" if took is None else f"{took:15.2f}"
    total = f"{sum(sizes.values()):.0f} ({sum(helpers):.0f})"
    print(f"{label:28}  {len(sizes):9}  {len(helpers):7}  {total:>12}{shown}", flush=True)


def processes(place: Path) -> set[int]:
    """The Toolcribs with data in a place, and all their descendants."""
    every = [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]
    parents = {pid: int(stat(pid)[1]) for pid in every}
    said = f"TOOLCRIB_DATA_DIR={place / 'data'}".encode()
    found = {pid for pid in parents if said in read(pid, "environ").split(b"\0")}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def is_helper(pid: int) -> bool:
    """Returns whether a process starts programs for Toolcrib or ends them."""
    return b"launching.zygote" in read(pid, "cmdline")


def pss(pid: int) -> float:
    """Returns the proportional set size in MB."""
    lines = read(pid, "smaps_rollup").splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:")) / 1e6


def stat(pid: int) -> list[bytes]:
    """Returns state, parent and so on; zeros of a process that has ended."""
    return read(pid, "stat").rpartition(b")")[2].split() or [b"0", b"0"]


def read(pid: int, name: str) -> bytes:
    """Returns a file of a process; nothing once it has ended."""
    try:
        return Path("/proc", str(pid), name).read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    main()

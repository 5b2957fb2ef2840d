"""What a call costs: `read_file` of a short file beside a tool of the SDK that does as much.

    python -m benchmarks.calls [--calls N] [--transport stdio|http] [--era E] [--at-once N]

The SDK's tool reads the file with no root, policy, audit log or record. The servers take turns in
blocks of calls, so that what else the machine does meets both alike; the client is the SDK's.
"""

import argparse
import os
import socket
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from subprocess import DEVNULL

import anyio
from mcp import Client, StdioServerParameters

SDK = str(Path(__file__).with_name("servers") / "sdk.py")
ERAS = ("2026-07-28", "legacy")
BLOCK = 20
"""Calls of one server before it is the other's turn."""

TARGET = 1.4
"""How many times the SDK's call Toolcrib's may take over stdio."""


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="What a call costs.")
    parser.add_argument("--calls", type=int, default=400, help="of each server")
    parser.add_argument("--transport", action="append", choices=("stdio", "http"))
    parser.add_argument("--era", action="append", choices=ERAS)
    parser.add_argument("--at-once", type=int, default=1, help="calls that are on their way")
    arguments = parser.parse_args()
    print(f"{'transport':10}{'era':12}{'server':10}{'ms a call':>10}{'ratio':>8}")
    for transport in arguments.transport or ("stdio", "http"):
        for era in arguments.era or ERAS:
            run = partial(measure, transport, era, calls=arguments.calls, at_once=arguments.at_once)
            with tempfile.TemporaryDirectory(prefix="toolcrib-calls-") as directory:
                sdk, toolcrib = anyio.run(run, Path(directory))
            for name, took in (("sdk", sdk), ("toolcrib", toolcrib)):
                print(f"{transport:10}{era:12}{name:10}{took:>10.2f}{took / sdk:>8.2f}")
    print(f"Target: toolcrib at most {TARGET} times the SDK over stdio.")


async def measure(
    transport: str, era: str, directory: Path, *, calls: int, at_once: int
) -> tuple[float, float]:
    """Returns the median milliseconds of a call: of the SDK's server, and of Toolcrib."""
    file = directory / "root" / "notes.md"
    await anyio.Path(file.parent).mkdir()
    await anyio.Path(file).write_text("hello\n")
    toolcrib = str(Path(sysconfig.get_path("scripts"), "toolcrib"))
    places = ["--root", str(file.parent), "--data-dir", str(directory / "data")]
    commands = ([sys.executable, SDK], [toolcrib, "serve", *places])
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(_client(command, transport, era))
            for command in commands
        ]
        times: list[list[float]] = [[], []]
        for turn in range(1 + -(-calls // BLOCK)):
            for client, taken in zip(clients, times, strict=True):
                took = await _block(client, str(file), at_once)
                if turn:  # the first one warms up
                    taken.append(took / BLOCK * 1000)
        return statistics.median(times[0]), statistics.median(times[1])


async def _block(client: Client, path: str, at_once: int) -> float:
    async def call(count: int) -> None:
        for _ in range(count):
            result = await client.call_tool("read_file", {"file_path": path})
            assert not result.is_error, result.content

    began = time.perf_counter()
    async with anyio.create_task_group() as group:
        for _ in range(at_once):
            group.start_soon(call, BLOCK // at_once)
    return time.perf_counter() - began


@asynccontextmanager
async def _client(command: Sequence[str], transport: str, era: str) -> AsyncIterator[Client]:
    if transport == "stdio":
        target: StdioServerParameters | str = StdioServerParameters(
            command=command[0], args=list(command[1:]), env=dict(os.environ)
        )
        async with Client(target, mode=era) as client:
            await client.list_tools()  # else the client asks for the list in every call
            yield client
        return
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    is_sdk = SDK in command
    given = [str(port)] if is_sdk else ["--transport", "http", "--port", str(port)]
    async with await anyio.open_process([*command, *given], stdout=DEVNULL, stderr=None) as process:
        await _wait_for(port)
        async with Client(f"http://127.0.0.1:{port}/mcp", mode=era) as client:
            await client.list_tools()
            yield client
        process.terminate()


async def _wait_for(port: int) -> None:
    with anyio.fail_after(30):
        while True:
            try:
                async with await anyio.connect_tcp("127.0.0.1", port):
                    return
            except OSError:
                await anyio.sleep(0.05)


if __name__ == "__main__":
    main()

"""What a trivial call costs through Toolcrib, beside the direct call and other relays.

    python -m benchmarks.gateway [--calls N] [--era ERA] [--json]

All speak stdio. The server behind is the SDK's low-level server with one tool that returns its
text; the client is the SDK's too. "relay" is the SDK's client behind the SDK's server and nothing
else: the least that two more ends of the protocol cost. The ways take turns call by call, so that
what else the machine does meets all of them alike, and what is told is the median of each and its
ratio to the direct call. Toolcrib keeps its promises meanwhile: each call is judged by the policy,
written into the audit log and recorded before it is answered.
"""

import argparse
import json
import os
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters

SERVERS = Path(__file__).with_name("servers")
BARE = [sys.executable, str(SERVERS / "bare.py")]
ERAS = ("2026-07-28", "2025-11-25")
WARM_UP = 20

TARGET = 1.5
"""How many times the direct call a call through Toolcrib may take."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to the tool."""

    name: str
    command: Sequence[str]
    tool: str = "echo"
    environ: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Cost:
    """What calls on one way cost."""

    way: str
    era: str
    median_ms: float
    ratio: float
    calls: int


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="What a call through the gateway costs.")
    parser.add_argument("--calls", type=int, default=300, help="of each way and era")
    parser.add_argument("--era", action="append", choices=ERAS)
    parser.add_argument("--without-fastmcp", action="store_true")
    parser.add_argument("--json", action="store_true", help="print one JSON array")
    arguments = parser.parse_args()
    costs = []
    for era in arguments.era or ERAS:
        with tempfile.TemporaryDirectory(prefix="toolcrib-gateway-") as directory:
            ways = _ways(Path(directory), fastmcp=not arguments.without_fastmcp)
            costs += anyio.run(measure, ways, era, arguments.calls)
    if arguments.json:
        print(json.dumps([asdict(cost) for cost in costs], indent=2))
    else:
        _print_table(costs)


async def measure(ways: Sequence[Way], era: str, calls: int) -> list[Cost]:
    """Calls the tool on each way by turns."""
    mode = era if era == ERAS[0] else "legacy"
    async with AsyncExitStack() as stack:
        clients = [
            (way, await stack.enter_async_context(Client(_parameters(way), mode=mode)))
            for way in ways
        ]
        for way, client in clients:
            await _check_listed(client, way)  # else the client asks for the list in every call
        times: dict[str, list[float]] = {way.name: [] for way in ways}
        for turn in range(WARM_UP + calls):
            for way, client in clients:
                took = await _timed(client, way)
                if turn >= WARM_UP:
                    times[way.name].append(took)
    medians = {name: statistics.median(each) * 1000 for name, each in times.items()}
    direct = medians[ways[0].name]
    return [Cost(name, era, each, each / direct, calls) for name, each in medians.items()]


async def _check_listed(client: Client, way: Way) -> None:
    tools = [tool.name for tool in (await client.list_tools()).tools]
    if way.tool not in tools:
        raise SystemExit(f"{way.name} does not list {way.tool}: {', '.join(tools)}")


async def _timed(client: Client, way: Way) -> float:
    began = time.perf_counter()
    result = await client.call_tool(way.tool, {"text": "hello"})
    took = time.perf_counter() - began
    if result.is_error or "hello" not in str(result.content):
        raise SystemExit(f"{way.name} did not answer the call: {result.content}")
    return took


def _ways(directory: Path, *, fastmcp: bool) -> list[Way]:
    toolcrib = str(Path(sysconfig.get_path("scripts"), "toolcrib"))
    root = directory / "root"
    root.mkdir()
    environ = {
        **os.environ,
        "TOOLCRIB_SERVERS": json.dumps({"bare": {"command": BARE[0], "args": BARE[1:]}}),
        "TOOLCRIB_POLICY__ALLOW": "bare__*",
        "TOOLCRIB_SURFACE": "lean,server:bare",
        "TOOLCRIB_DATA_DIR": str(directory / "data"),
        "TOOLCRIB_ROOT": str(root),
    }
    ways = [
        Way("direct", BARE),
        Way("relay", [sys.executable, str(SERVERS / "relay.py"), *BARE]),
        Way("toolcrib", [toolcrib, "serve"], "bare__echo", environ),
    ]
    if fastmcp:
        ways.append(Way("fastmcp", [sys.executable, str(SERVERS / "fast_stdio_proxy.py"), *BARE]))
    return ways


def _parameters(way: Way) -> StdioServerParameters:
    command, *arguments = way.command
    environ = dict(os.environ) if way.environ is None else dict(way.environ)
    return StdioServerParameters(command=command, args=arguments, env=environ)


def _print_table(costs: Sequence[Cost]) -> None:
    print(f"{'way':10}{'era':12}{'median ms':>10}{'ratio':>8}   target: toolcrib <= {TARGET}")
    for one in costs:
        print(f"{one.way:10}{one.era:12}{one.median_ms:>10.2f}{one.ratio:>8.2f}")


if __name__ == "__main__":
    main()

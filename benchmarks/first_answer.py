"""Measures the way from nothing to a first answer in a client: `python -m benchmarks.first_answer`.

Needs uv on the PATH and the registry of PyPI. With empty caches, uv and pip install a wheel of this
checkout, `toolcrib install` adds it to Claude Code, and what the client's file names answers.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters

ROOT = Path(__file__).parents[1]
FOREIGN = ("TOOLCRIB_", "XDG_", "UV_CACHE", "UV_TOOL", "CLAUDE_")
DECISION = "We decided to store the orders in SQLite."


async def ask(home: Path) -> None:
    """Starts what the client's file names, tells it a decision, and asks for that."""
    entry = json.loads((home / ".claude.json").read_text("utf-8"))["mcpServers"]["toolcrib"]
    command = {"command": entry["command"], "args": entry["args"]}
    async with Client(StdioServerParameters(**command, env={"HOME": str(home)})) as client:
        await client.call_tool("remember", {"content": DECISION})
        result = await client.call_tool("query", {"query": "where do we store orders?"})
        assert DECISION in str(result.content), result


def measure(wheel: Path, home: Path, *, with_uv: bool) -> str:
    """Installs, configures and asks; returns megabytes, seconds of each and of all, and of CPU."""
    environ = {key: each for key, each in os.environ.items() if not key.startswith(FOREIGN)}
    environ["HOME"] = str(home)

    def run(*command: str) -> None:
        subprocess.run(command, check=True, cwd=home, env=environ, stdout=subprocess.DEVNULL)

    (home / ".claude.json").write_text("{}")
    before, times = resource.getrusage(resource.RUSAGE_CHILDREN), [time.monotonic()]
    program = home / (".local/bin" if with_uv else "venv/bin") / "toolcrib"
    if with_uv:
        run("uv", "tool", "install", "--quiet", "--python", sys.executable, str(wheel))
    else:
        run(sys.executable, "-m", "venv", "venv")
        run("venv/bin/pip", "install", "--quiet", "--no-cache-dir", str(wheel))
    times.append(time.monotonic())
    run(str(program), "install", "--yes", "claude-code")
    times.append(time.monotonic())
    anyio.run(ask, home)
    times.append(time.monotonic())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    files = program.resolve().parents[1].rglob("*")
    numbers = [sum(each.lstat().st_blocks * 512 for each in files) / 1e6]
    numbers += [each - begun for begun, each in pairwise(times)]
    numbers += [times[-1] - times[0]]
    numbers += [after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime]
    return " ".join(f"{each:10.1f}" for each in numbers)


def main() -> None:
    """Prints a row for uv and for pip."""
    titles = ("MB", "installed", "in client", "answered", "all", "processor")
    print(f"   {' '.join(f'{each:>10}' for each in titles)}")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        build = (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder)
        subprocess.run(build, check=True, cwd=ROOT, capture_output=True)
        (wheel,) = Path(folder).glob("*.whl")
        for name in ("uv", "pip"):
            home = Path(folder, name)
            home.mkdir()
            print(f"{name:3}{measure(wheel, home, with_uv=name == 'uv')}", flush=True)


if __name__ == "__main__":
    main()

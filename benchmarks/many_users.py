"""A hundred users of one server over HTTP, compared with one alone and with the SDK's bare server.

    python -m benchmarks.many_users [--users N] [--calls N] [--think SECONDS] [--era E]

Each user has a token and does by turns: add a document, ask for it, remember something, read a
file. They pause for `--think` seconds on average, or not at all (saturation). An answer is wrong if
it lacks what the user stored, or names what another did. What was acknowledged and is not in the
record afterwards is lost. The SDK's server has a tool that reads a file, and nothing else.
"""

import argparse
import json
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from benchmarks.conformance import free_port, listening, toolcrib

ERAS = ("2026-07-28", "legacy")
SDK = Path(__file__).with_name("servers") / "sdk.py"
STEPS = ("add_document", "query", "remember", "read_file")
SUBJECTS = ("kettle", "harbour", "violin", "ladder", "orchard", "compass", "lantern", "saddle")


@dataclass
class Run:
    """Some users of one server, and what they saw of it."""

    server: str
    era: str
    users: int
    think: float
    calls: int
    url: str = ""
    pid: int = 0
    done: int = 0
    problems: Counter[str] = field(default_factory=Counter)  # errors, wrong, lost
    milliseconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    stored: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    memory_mb: list[str] = field(default_factory=list)  # after each quarter of the calls

    async def load(self) -> None:
        """Runs all users at once."""
        async with anyio.create_task_group() as group:
            for number in range(self.users):
                group.start_soon(self._use, number)

    async def _use(self, number: int) -> None:
        user, chance = f"u{number}", random.Random(number)  # noqa: S311  # a pause, not a secret
        async with _client(self.url, user, self.era) as client:
            for turn in range(self.calls // self.users):
                await anyio.sleep(chance.expovariate(1 / self.think) if self.think else 0)
                step = STEPS[turn % 4] if self.server == "toolcrib" else "read_file"
                await self._call(client, user, step, turn // 4)
                self.done += 1
                if self.done % (self.calls // 4) == 0:
                    self.memory_mb.append(f"{_memory_mb(self.pid):.0f}")

    async def _call(self, client: Client, user: str, step: str, number: int) -> None:
        word, subject = f"zq{user}n{number}", SUBJECTS[number % len(SUBJECTS)]
        arguments, expected = {
            "add_document": ({"text": f"The {subject} of {user} is kept under {word}."}, ""),
            "query": ({"query": f"Under which word is the {subject} {word} kept?"}, word),
            "remember": ({"content": f"{user} lent the {subject} to a person called {word}m."}, ""),
            "read_file": ({"file_path": "notes.md"}, "hello"),
        }[step]
        if step == "add_document":
            arguments["title"] = f"{subject} {word}"
        start = time.perf_counter()
        try:
            result = await client.call_tool(step, arguments)
        except Exception as error:  # noqa: BLE001  # each is counted
            self.problems[f"error {type(error).__name__}"] += 1
            return
        self.milliseconds[step].append((time.perf_counter() - start) * 1000)
        said = str(result.content)
        others = any(f"zqu{other}n" in said for other in range(self.users) if user != f"u{other}")
        if result.is_error:
            self.problems[f"error of {step}: {said[:120]}"] += 1
        elif expected not in said or others:
            self.problems["wrong"] += 1
        elif step in {"add_document", "remember"}:
            self.stored[user].append(f"{word}." if step == "add_document" else f"{word}m")

    def check_stored(self, record: Path) -> None:
        """Counts what was acknowledged and is not in the record."""
        with closing(sqlite3.connect(record)) as connection:
            for user, words in self.stored.items():
                rows = connection.execute("SELECT content FROM chunks WHERE user_id = ?", (user,))
                kept = " ".join(row[0] for row in rows)
                self.problems["lost"] += sum(word not in kept for word in words)


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="Many users of one server.")
    parser.add_argument("--users", type=int, default=100)
    parser.add_argument("--calls", type=int, default=2_000, help="of all users together")
    parser.add_argument("--think", type=float, action="append", help="seconds; 0 is saturation")
    parser.add_argument("--era", action="append", choices=ERAS)
    parser.add_argument("--server", action="append", choices=("toolcrib", "sdk"))
    parser.add_argument("--files", type=int, help="limit of the server's open files")
    given = parser.parse_args()
    for era in given.era or ERAS:
        for server in given.server or ("toolcrib", "sdk"):
            for think in given.think or (0.0, 15.0):
                for users in sorted({1, given.users} if think == 0 else {given.users}):
                    calls = max(8, given.calls // given.users) * users
                    measure(Run(server, era, users, think, calls), given.files)


def measure(run: Run, files: int | None) -> None:
    """Starts a server, has every user call it, and prints what they saw."""
    with tempfile.TemporaryDirectory(prefix="toolcrib-users-") as name:
        place, port = Path(name), free_port()
        (place / "notes.md").write_text("hello\n")
        users = [f"u{number}" for number in range(run.users)]
        tokens = {user: {"token": f"token-of-{user}", "user_id": user} for user in users}
        environ = {
            **os.environ,
            "TOOLCRIB_HTTP__PORT": str(port),
            "TOOLCRIB_HTTP__TOKENS": json.dumps(tokens),
            "TOOLCRIB_DATA_DIR": str(place / "data"),
            "TOOLCRIB_ROOT": str(place),
        }
        command = [sys.executable, str(SDK), str(port)] if run.server == "sdk" else toolcrib()
        if files is not None:
            command = ["prlimit", f"--nofile={files}", *command]
        with listening(command, port, place / "log", cwd=place, environ=environ) as process:
            run.url, run.pid = f"http://127.0.0.1:{port}/mcp", process.pid
            began = _cpu(run.pid)
            anyio.run(run.load)
            cpu = (_cpu(run.pid) - began) / run.done * 1000
            descriptors = len(list(Path(f"/proc/{run.pid}/fd").iterdir()))
        if run.server == "toolcrib":
            run.check_stored(place / "data" / "toolcrib.db")
        log = (place / "log").read_text().splitlines()
        run.problems["lines of the log"] = sum("WARN" in line or "ERR" in line for line in log)
    times = ", ".join(
        f"{step} {statistics.median(each):.0f} / {statistics.quantiles(each, n=20)[-1]:.0f}"
        for step, each in run.milliseconds.items()
    )
    print(
        f"{run.server}, {run.era}, {run.users} users, think {run.think:g} s, {run.done} calls;"
        f" p50 / p95 ms: {times}; {cpu:.1f} ms CPU a call; {' → '.join(run.memory_mb)} MB,"
        f" {descriptors} descriptors; {dict(+run.problems) or 'no problems'}",
        flush=True,
    )


@asynccontextmanager
async def _client(url: str, user: str, era: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer token-of-{user}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=300) as web,
        Client(streamable_http_client(url, http_client=web), mode=era) as client,
    ):
        await client.list_tools()  # else the client asks for the list in every call
        yield client


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory_mb(pid: int) -> float:
    pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()

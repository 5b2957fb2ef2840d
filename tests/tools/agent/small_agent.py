"""A small real agent: does what its task says, with the Toolcrib that it is given."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

TOKEN = os.environ["_TOOLCRIB_DELEGATION"]
URL = os.environ["_TOOLCRIB_URL"]
SLEEP = [sys.executable, "-c", "import time; time.sleep(600)"]


async def allow(context: Any, params: Any) -> ElicitResult:
    """Answers in the place of a person."""
    return ElicitResult(action="accept", content={"answer": "once"})


async def call(rest: str, token: str = TOKEN, mode: Any = "auto") -> str:
    """What a tool of Toolcrib answers, or for no tool the names of all that are listed."""
    name, _, arguments = rest.partition(" ")
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(
            streamable_http_client(URL, http_client=http), mode=mode, elicitation_callback=allow
        ) as client,
    ):
        if not name:
            return " ".join(each.name for each in (await client.list_tools()).tools)
        result = await client.call_tool(name, json.loads(arguments or "{}"))
        return "".join(getattr(each, "text", "") for each in result.content)


def forge(token: str) -> str:
    try:
        return asyncio.run(call("", token))
    except* (MCPError, httpx2.HTTPError):
        pass
    return "refused"


def write(path: str) -> str:
    Path(path).write_text("by the agent\n", encoding="utf-8")
    return "written"


def read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        return f"failed: {error.strerror}"


def linger(mark: str) -> str:
    closed = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.Popen([*SLEEP, mark], start_new_session=True, **closed)  # type: ignore[call-overload]  # of the very same kind
    return "left something behind"


def hang(mark: str) -> str:
    sys.stderr.write("still thinking\n")
    sys.stderr.flush()
    subprocess.run([*SLEEP, mark], check=False)
    return "never"


def flood(_rest: str) -> str:
    sys.stderr.write("noise\n" * 1_000_000)
    sys.stdout.write("x" * 6_000_000)
    return "after the flood"


def fail(why: str) -> str:
    said = f"I could not: {why}"
    sys.stdout.write(json.dumps({"said": {"answer": said}}))
    sys.stderr.write("noise\n" * 1_000 + "the lock: rusty\n")
    sys.exit(1)


def broken(_rest: str) -> str:
    sys.stdout.write('{"said": {"answer": ' + "[" * 50_000)
    sys.exit(0)


def trap(path: str) -> str:
    """Makes a repository whose settings run a program wherever git looks into it."""
    inner = Path("inner")
    subprocess.run(["git", "init", "-q", inner], check=True)  # noqa: S607  # of the machine
    (inner / "file").write_text("x", encoding="utf-8")
    with (inner / ".git" / "config").open("a", encoding="utf-8") as config:
        config.write(f"[core]\n\tfsmonitor = touch {path}\n")
    return "set"


VERBS: dict[str, Callable[[str], str]] = {
    "call": lambda rest: asyncio.run(call(rest)),
    "call_by_handshake": lambda rest: asyncio.run(call(rest, mode="legacy")),
    "list": lambda _rest: asyncio.run(call("")),
    "forge": forge,
    "write": write,
    "read": read,
    "linger": linger,
    "hang": hang,
    "flood": flood,
    "fail": fail,
    "broken": broken,
    "trap": trap,
    "colour": lambda _rest: f"\x1b[31mred\x1b[0m {TOKEN}",
    "variables": lambda _rest: " ".join(sorted(os.environ)),
}


def main() -> None:
    task = sys.argv[1] if len(sys.argv) > 1 else sys.stdin.read()
    first = task.removeprefix("Task: ").partition("\n")[0]
    verb, _, rest = first.partition(" ")
    said = VERBS[verb](rest) if verb in VERBS else f"was told: {first}"
    sys.stdout.write("\n" + json.dumps({"said": {"answer": said}, "usd": 0.25, "id": "s-1"}))


main()

"""Starts the server as a client would, and runs one search."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from server.cli.terminal.screen import echo, wrapped
from server.mcp.visible import visible, visible_lines

if TYPE_CHECKING:
    from server.clients.client import Client
    from server.clients.launch import Wanted

ANSWER_SECONDS = 60.0
"""Time that a server has to start, to list its tools and to search."""

CHECKER = "toolcrib-install"
"""The name with which the check connects."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What a started server answered."""

    tools: int = 0
    start_seconds: float = 0.0
    search_seconds: float = 0.0
    problem: str = ""


def try_commands(commands: Iterable[tuple[Client, Sequence[str]]], wanted: Wanted) -> bool:
    """Starts the command of each client, the same one once; returns whether all answered."""
    titles: dict[tuple[str, ...], list[str]] = {}
    for client, given in commands:
        if words := tuple(given):
            titles.setdefault(words, []).append(client.title)
    fine = True
    for words, named in titles.items():
        trial = try_command(words, wanted)
        who = ", ".join(named)
        if trial.problem:
            fine = False
            echo(wrapped(visible_lines(f"Does not work in {who}: {trial.problem}")), err=True)
            echo(wrapped(visible(f"  The command: {' '.join(words)}")), err=True)
            continue
        echo(
            wrapped(
                f"Works in {who}: {trial.tools} tools after {trial.start_seconds:.1f}s, a search"
                f" in {trial.search_seconds:.1f}s."
            )
        )
    return fine


def try_command(words: tuple[str, ...], wanted: Wanted) -> Trial:
    """Starts a command without the variables of this terminal, and asks it."""
    return anyio.run(_try, words, wanted.project or Path.cwd())


async def _try(words: tuple[str, ...], folder: Path) -> Trial:
    from mcp import Client, MCPError, StdioServerParameters
    from mcp_types import Implementation

    from tools.core.errors import only_cause

    # env(1) starts the command without PATH, which desktop applications do not pass on.
    filled = [each.replace("${workspaceFolder}", str(folder)) for each in words]
    started = StdioServerParameters(
        command="/usr/bin/env", args=["-u", "PATH", *filled], cwd=str(folder)
    )
    begun = time.monotonic()
    trial = Trial(problem=f"it did not answer within {ANSWER_SECONDS:.0f} s.")
    info = Implementation(name=CHECKER, version="1")
    try:
        with anyio.move_on_after(ANSWER_SECONDS):
            async with Client(started, client_info=info) as client:
                tools = (await client.list_tools()).tools
                listed = time.monotonic()
                result = await client.call_tool("query", {"query": "toolcrib", "top_k": 1})
                searched = time.monotonic()
                text = "".join(getattr(each, "text", "") for each in result.content)
                problem = text if result.is_error else ""
                trial = Trial(len(tools), listed - begun, searched - listed, problem)
    except (MCPError, OSError, BaseExceptionGroup) as error:
        cause = only_cause(error)
        if isinstance(cause, KeyboardInterrupt | SystemExit):
            raise
        return Trial(problem=f"{cause or type(error).__name__}.")
    return trial

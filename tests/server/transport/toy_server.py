"""A low-level server behind the real settings and transports, for tests that start a process.

Usage: toy_server.py stdio|sse|http, configured by TOOLCRIB_… variables. It appends what its
background work does to the file TOY_JOURNAL.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server

from server import logs
from server.cli.terminal.errors import reported
from server.settings.sources import load
from server.transport.http import serve_http, serve_sse
from server.transport.stdio import serve_stdio

JOURNAL = Path(os.environ.pop("TOY_JOURNAL"))
NAMES = ("echo", "print", "wait")


def note(line: str) -> None:
    with JOURNAL.open("a", encoding="utf-8") as journal:
        journal.write(line + "\n")


@asynccontextmanager
async def running() -> AsyncIterator[None]:
    note("started")
    try:
        yield
    finally:
        note("stopped")


async def list_tools(
    _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in NAMES]
    )


async def call_tool(
    _context: ServerRequestContext[Any], params: types.CallToolRequestParams
) -> types.CallToolResult:
    if params.name == "print":
        print("noise in a buffer")  # noqa: T201  # what the test is about
        os.write(1, b"noise on descriptor 1\n")
        atexit.register(print, "noise at exit")
    if params.name == "wait":
        note("waiting")
        try:
            await anyio.sleep_forever()
        finally:
            note("cancelled")
    text = str((params.arguments or {}).get("text", ""))
    return types.CallToolResult(content=[types.TextContent(type="text", text=text)])


def main() -> None:
    settings = load()
    logs.configure(settings)
    logging.getLogger("toolcrib").info("toy")
    server = Server("toy", on_list_tools=list_tools, on_call_tool=call_tool)
    serve = {
        "stdio": partial(serve_stdio, server),
        "sse": partial(serve_sse, server, settings.http),
        "http": partial(serve_http, server, settings.http),
    }[sys.argv[1]]
    anyio.run(serve, running())


with reported():
    main()

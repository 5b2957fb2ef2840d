"""The SDK's own server with one tool that reads a file and checks nothing: sdk.py [PORT]."""

from __future__ import annotations

import sys
from pathlib import Path

import anyio.to_thread
from mcp.server.mcpserver import MCPServer

server = MCPServer("sdk", log_level="WARNING")


@server.tool()
async def read_file(file_path: str) -> str:
    """Returns the text of a file."""
    return await anyio.to_thread.run_sync(Path(file_path).read_text)


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run()

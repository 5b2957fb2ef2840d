"""FastMCP's proxy before another server, over stdio: fast_stdio_proxy.py COMMAND [ARG…]."""

from __future__ import annotations

import sys

from fastmcp.server import create_proxy

if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    behind = {"mcpServers": {"bare": {"command": command, "args": arguments}}}
    create_proxy(behind, name="proxy").run(show_banner=False)

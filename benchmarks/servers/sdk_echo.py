"""The same trivial tool as in `bare`, by the SDK's convenience layer."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer

server = MCPServer("sdk", log_level="WARNING")


@server.tool()
def echo(text: str) -> str:
    """Returns the text."""
    return text


if __name__ == "__main__":
    server.run()

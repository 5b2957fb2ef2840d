"""The same trivial tool as in `bare`, as FastMCP's documentation has it."""

from __future__ import annotations

from fastmcp import FastMCP

server = FastMCP("fast")


@server.tool
def echo(text: str) -> str:
    """Returns the text."""
    return text


if __name__ == "__main__":
    server.run(show_banner=False)

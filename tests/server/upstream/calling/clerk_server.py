"""Another server over stdio: a clerk who counts, and answers each call with its arguments."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "folder": {"type": "string"},
        "limit": {"type": "integer"},
        "debug": {"type": "boolean"},
    },
    "required": ["query", "folder", "limit"],
}
READS = types.ToolAnnotations(read_only_hint=True)
TOOLS = {"look": READS, "peek": READS, "put": types.ToolAnnotations()}


async def list_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[
            types.Tool(name=name, description="Clerks.", input_schema=SCHEMA, annotations=each)
            for name, each in TOOLS.items()
        ]
    )


class Clerk:
    calls = 0

    async def call(self, _ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        self.calls += 1
        text = f"{self.calls} {sorted((params.arguments or {}).items())}"
        return types.CallToolResult(content=[types.TextContent(text=text)])


async def main() -> None:
    server: Server[Any] = Server(
        "clerk", version="1", on_list_tools=list_tools, on_call_tool=Clerk().call
    )
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)

"""The SDK's client behind the SDK's server, and nothing else: relay.py COMMAND [ARG…]."""

from __future__ import annotations

import sys
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def main() -> None:
    """Serves what the other server has until stdin ends."""
    command, *arguments = sys.argv[1:]
    async with Client(StdioServerParameters(command=command, args=arguments)) as client:

        async def list_tools(
            _ctx: ServerRequestContext[Any, Any], _params: types.PaginatedRequestParams | None
        ) -> types.ListToolsResult:
            return await client.list_tools()

        async def call_tool(
            _ctx: ServerRequestContext[Any, Any], params: types.CallToolRequestParams
        ) -> types.CallToolResult:
            return await client.call_tool(params.name, params.arguments)

        server = Server("relay", on_list_tools=list_tools, on_call_tool=call_tool)
        async with stdio_server() as (reader, writer):
            await server.run(reader, writer, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)

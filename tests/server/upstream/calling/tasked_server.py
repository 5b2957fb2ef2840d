"""Another server over stdio, of protocol 2026-07-28, whose only tool answers with a task.

It asks once before it is done, unless it was called with `idle`: then it works for ever. Each line
that it appends to the file JOURNAL tells what happened to it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from server.mcp.tasks import EXTENSION, CancelParams, TaskParams, UpdateParams

Context = ServerRequestContext[Any, Any]
ID = "their-very-own-id"
FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
ASKS = {
    "method": "elicitation/create",
    "params": {"mode": "form", "message": "Who are you?", "requestedSchema": FORM},
}


def note(line: str) -> None:
    with Path(os.environ["JOURNAL"]).open("a", encoding="utf-8") as journal:
        journal.write(line + "\n")


class Grower:
    def __init__(self) -> None:
        self.idle = False
        self.name = ""

    def task(self, status: str, **more: Any) -> dict[str, Any]:
        when = {"createdAt": "2026-11-25T10:00:00Z", "lastUpdatedAt": "2026-11-25T10:00:00Z"}
        return {"taskId": ID, "status": status, "ttlMs": None, "pollIntervalMs": 50, **when, **more}

    async def call(self, ctx: Context, params: types.CallToolRequestParams) -> Any:
        said = ctx.session.client_capabilities
        assert said is not None
        assert EXTENSION in (said.extensions or {})
        self.idle = bool((params.arguments or {}).get("idle"))
        return {"resultType": "task", **self.task("working")}

    async def get(self, _ctx: Context, params: TaskParams) -> dict[str, Any]:
        assert params.task_id == ID
        if self.idle:
            note("idles")
            return self.task("working", statusMessage="idling")
        if not self.name:
            return self.task("input_required", inputRequests={"who": ASKS})
        content = [{"type": "text", "text": f"grown for {self.name}"}]
        return self.task("completed", result={"content": content})

    async def update(self, _ctx: Context, params: UpdateParams) -> dict[str, Any]:
        self.name = params.input_responses["who"]["content"]["name"]
        return {}

    async def cancel(self, _ctx: Context, params: CancelParams) -> dict[str, Any]:
        note(f"cancelled {params.task_id}")
        return {}

    async def tools(self, _ctx: Context, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(
            tools=[types.Tool(name="grow", input_schema={"type": "object"})]
        )


async def main() -> None:
    grower = Grower()
    server: Server[Any] = Server(
        "grower", version="1", on_list_tools=grower.tools, on_call_tool=grower.call
    )
    server.extensions[EXTENSION] = {}
    server.add_request_handler("tasks/get", TaskParams, grower.get)
    server.add_request_handler("tasks/update", UpdateParams, grower.update)
    server.add_request_handler("tasks/cancel", CancelParams, grower.cancel)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)

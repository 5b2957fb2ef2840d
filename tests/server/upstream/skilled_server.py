"""A server of skills, as a program of its own: skilled_server.py STATE legacy|both.

STATE is a JSON file, read anew for each answer: `entries`, what skills/list has on each page;
`files`, the text of each address; `blobs`, those that are Base64; `endless`, whether each page is
followed by another. What is asked is written to the file beside it, STATE.asked.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

STATE, ERA = Path(sys.argv[1]), sys.argv[2]
EXTENSION = "io.modelcontextprotocol/skills"

Context = ServerRequestContext[Any, Any]


class UriParams(types.RequestParams):
    uri: str


def _state(asked: str) -> dict[str, Any]:
    with STATE.with_suffix(".asked").open("a") as file:
        file.write(f"{asked}\n")
    state: dict[str, Any] = json.loads(STATE.read_text())
    return state


async def list_skills(_ctx: Context, params: types.PaginatedRequestParams | None) -> dict[str, Any]:
    state = _state("skills/list")
    pages = state["entries"]
    number = int((params.cursor if params else None) or 0)
    answer = {"skills": pages[number % len(pages)], "ttlMs": 0, "cacheScope": "private"}
    if number + 1 < len(pages) or state.get("endless"):
        answer["nextCursor"] = str(number + 1)
    return answer


async def get_skill(_ctx: Context, params: UriParams) -> dict[str, Any]:
    for page in _state(f"skills/get {params.uri}")["entries"]:
        for each in page:
            if each["uri"] == params.uri:
                return {"skill": each, "ttlMs": 0, "cacheScope": "private"}
    raise MCPError(types.INVALID_PARAMS, "Unknown skill")


async def list_resources(
    _ctx: Context, _params: types.PaginatedRequestParams | None
) -> types.ListResourcesResult:
    files = _state("resources/list")["files"]
    return types.ListResourcesResult(resources=[types.Resource(uri=uri, name=uri) for uri in files])


async def read_resource(
    _ctx: Context, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult:
    state = _state(params.uri)
    if (text := state["files"].get(params.uri)) is not None:
        content = types.TextResourceContents(uri=params.uri, text=text)
        return types.ReadResourceResult(contents=[content])
    if (blob := state["blobs"].get(params.uri)) is not None:
        return types.ReadResourceResult(
            contents=[types.BlobResourceContents(uri=params.uri, blob=blob)]
        )
    raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": params.uri})


async def main() -> None:
    server = Server[Any](
        "skilled", on_list_resources=list_resources, on_read_resource=read_resource
    )
    server.extensions[EXTENSION] = {}
    server.add_request_handler("skills/list", types.PaginatedRequestParams, list_skills)
    server.add_request_handler("skills/get", UriParams, get_skill)
    async with stdio_server() as (read, write):
        if ERA == "legacy":
            options = server.create_initialization_options(NotificationOptions())
            await serve_loop(server, read, write, init_options=options, lifespan_state={})
        else:
            await server.run(read, write, server.create_initialization_options())


anyio.run(main)

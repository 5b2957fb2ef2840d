"""Another server for the tests of the gateway, over stdio.

Usage: toy_upstream.py handshake|modern, the era that it speaks. Each line that it appends to the
file TOY_JOURNAL tells what happened to it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata

Context = ServerRequestContext[Any, Any]
Params = types.CallToolRequestParams
Answer = types.CallToolResult | types.InputRequiredResult
Tool = Callable[[Context, Params], Awaitable[Answer]]

FORM = {"type": "object", "properties": {"name": {"type": "string", "title": "Your na\u200bme"}}}
ASKS = types.ElicitRequest(
    params=types.ElicitRequestFormParams(message="Who are\u202e you?", requested_schema=FORM)
)
ASKS_MODEL = types.CreateMessageRequest(
    params=types.CreateMessageRequestParams(
        messages=[types.SamplingMessage(role="user", content=types.TextContent(text="2+2?"))],
        max_tokens=10,
        system_prompt="Add.",
        include_context="allServers",
    )
)
ASKS_URL = types.ElicitRequest(
    params=types.ElicitRequestURLParams(
        message="Sign in.", url="https://example.com/in", elicitation_id="7"
    )
)
ASKS_ROOTS = types.ListRootsRequest()
KINDS: dict[str, tuple[types.InputRequest, type[Any]]] = {
    "form": (ASKS, types.ElicitResult),
    "url": (ASKS_URL, types.ElicitResult),
    "model": (ASKS_MODEL, types.CreateMessageResult),
    "roots": (ASKS_ROOTS, types.ListRootsResult),
}


def note(line: str) -> None:
    with Path(os.environ["TOY_JOURNAL"]).open("a", encoding="utf-8") as journal:
        journal.write(line + "\n")


def text(said: str, **more: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=said)], **more)


async def echo(ctx: Context, params: Params) -> Answer:
    note("echo")
    told = {key: value for key, value in (ctx.meta or {}).items() if "mcp" not in key.lower()}
    keys = sorted(ctx.meta or {})
    return text("echoed", structured_content={"got": params.arguments, "meta": told, "keys": keys})


async def everything(_ctx: Context, _params: Params) -> Answer:
    icon = types.Icon(src="https://example.com/i.png", mime_type="image/png")
    return types.CallToolResult(
        content=[
            types.TextContent(
                text="t", annotations=types.Annotations(audience=["user"], priority=0.5)
            ),
            types.ImageContent(data="aGk=", mime_type="image/png", _meta={"a.b/c": 1}),
            types.AudioContent(data="aGk=", mime_type="audio/wav"),
            types.ResourceLink(uri="toy://r", name="r", icons=[icon]),
            types.EmbeddedResource(
                resource=types.TextResourceContents(uri="toy://e", text="e", mime_type="text/x")
            ),
        ],
        structured_content={"null": None, "deep": [{"x": 1.5}]},
        _meta={"example.com/k": {"v": [1, None]}},
    )


async def picturing(_ctx: Context, params: Params) -> Answer:
    image = types.ImageContent(data=(params.arguments or {})["data"], mime_type="image/png")
    link = types.ResourceLink(uri="toy://r", name="r")
    return types.CallToolResult(content=[types.TextContent(text="before"), image, link])


async def failing(_ctx: Context, _params: Params) -> Answer:
    return text("it broke", is_error=True)


async def listed(_ctx: Context, _params: Params) -> Answer:
    return types.CallToolResult(content=[], structured_content=[1, 2])


async def refusing(_ctx: Context, params: Params) -> Answer:
    given = params.arguments or {}
    code = given.get("code", types.INTERNAL_ERROR)
    raise MCPError(code, "No, not this", data=given.get("data", {"why": "because"}))


async def dying(_ctx: Context, _params: Params) -> Answer:
    os._exit(3)


async def stepping(ctx: Context, _params: Params) -> Answer:
    for step in (1, 2, 2, 3):
        await ctx.session.report_progress(step, 3, f"step {step}")
    return text("stepped")


async def waiting(_ctx: Context, _params: Params) -> Answer:
    note("waiting")
    try:
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        note("cancelled")
        raise
    raise AssertionError("It sleeps for ever.")


async def logging(ctx: Context, _params: Params) -> Answer:
    levels: tuple[types.LoggingLevel, ...] = ("debug", "info", "error")
    for level in levels:
        params = types.LoggingMessageNotificationParams(level=level, logger="deep", data=level)
        if is_heard(ctx, level):
            await ctx.session.send_notification(
                types.LoggingMessageNotification(params=params), ctx.request_id
            )
    return text("logged")


LEVELS = ["debug", "info", "notice", "warning", "error"]
level_set = ["debug"]


def is_heard(ctx: Context, level: str) -> bool:
    if ctx.session.protocol_version < "2026":
        return LEVELS.index(level) >= LEVELS.index(level_set[0])
    opted = (ctx.meta or {}).get(types.LOG_LEVEL_META_KEY)
    return opted is not None and LEVELS.index(level) >= LEVELS.index(str(opted))


async def set_level(_ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    note(f"level {params.level}")
    level_set[0] = params.level
    return types.EmptyResult()


async def asking(ctx: Context, params: Params) -> Answer:
    """Asks one question of each kind that is named, one after the other."""
    note("asking")
    kinds = (params.arguments or {}).get("kinds", ["form"])
    if ctx.session.protocol_version >= "2026":
        return asked_in_rounds(params, kinds)
    said = []
    for kind in kinds:
        request, result = KINDS[kind]
        try:
            answer = await ctx.session.send_request(
                request, result, metadata=ServerMessageMetadata(related_request_id=ctx.request_id)
            )
        except MCPError as error:
            said.append(f"error {error.code}: {error.error.message}")
        except anyio.get_cancelled_exc_class():
            note("gave up asking")
            raise
        else:
            said.append(answer.model_dump_json(by_alias=True, exclude_none=True))
    note("asked")
    return text("\n".join(said))


def asked_in_rounds(params: Params, kinds: list[str]) -> Answer:
    """The same of protocol 2026-07-28: one round a question, its state names how many it had."""
    done = [line for line in (params.request_state or "").split("\n") if line]
    for key, answer in (params.input_responses or {}).items():
        done.append(f"{key}={answer.model_dump_json(by_alias=True, exclude_none=True)}")
    if len(done) == len(kinds):
        return text("\n".join(done))
    request, _ = KINDS[kinds[len(done)]]
    return types.InputRequiredResult(
        input_requests={"q": request}, request_state="\n".join(done) or None
    )


async def endless(_ctx: Context, _params: Params) -> Answer:
    return types.InputRequiredResult(input_requests={"q": ASKS}, request_state="again")


async def abilities(ctx: Context, _params: Params) -> Answer:
    said = ctx.session.client_capabilities
    assert said is not None
    return text(said.model_dump_json(by_alias=True, exclude_none=True))


TOOLS: dict[str, Tool] = {
    "echo": echo,
    "everything": everything,
    "picturing": picturing,
    "failing": failing,
    "listed": listed,
    "refusing": refusing,
    "dying": dying,
    "stepping": stepping,
    "waiting": waiting,
    "logging": logging,
    "asking": asking,
    "endless": endless,
    "abilities": abilities,
}
READS = types.ToolAnnotations(read_only_hint=True)
DEFINED: dict[str, Any] = {
    "echo": {"annotations": READS},
    "asking": {"annotations": READS},
    "everything": {
        "title": "Everything",
        "description": "All kinds of content.",
        "icons": [types.Icon(src="https://example.com/i.png", sizes=["48x48"])],
        "annotations": types.ToolAnnotations(title="All", read_only_hint=True),
        "output_schema": {"type": "object", "required": ["never"]},
        "_meta": {"example.com/tool": True},
    },
}


async def list_tools(
    _ctx: Context, _params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    note("listed")
    return types.ListToolsResult(
        tools=[
            types.Tool(name=name, input_schema={"type": "object"}, **DEFINED.get(name, {}))
            for name in TOOLS
        ]
    )


async def call_tool(ctx: Context, params: Params) -> Answer:
    return await TOOLS[params.name](ctx, params)


async def refuse_handshake(ctx: Context, call_next: CallNext) -> HandlerResult:
    if ctx.method == "initialize":
        raise MCPError(types.METHOD_NOT_FOUND, "This server shakes no hands.")
    return await call_next(ctx)


async def main(era: str) -> None:
    server: Server[Any] = Server(
        "toy", version="1", on_list_tools=list_tools, on_call_tool=call_tool
    )
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
    note(f"started {era}")
    async with stdio_server() as (read, write):
        if era == "handshake":
            await serve_loop(server, read, write, lifespan_state={})
        else:
            server.middleware.append(refuse_handshake)
            await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])

"""A server to browse, as a program of its own: browsed_server.py NAME legacy|both.

"legacy" knows the handshake alone, "both" protocol 2026-07-28 as well. Its tools change what there
is, and tell of it as its client's protocol wants it. It does not start where a file is called down.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.runner import serve_loop
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

NAME, ERA = sys.argv[1:3]
PIXEL = "iVBORw0KGgo="
ICON = types.Icon(src="https://example.com/icon.png", mime_type="image/png", sizes=["1x1"])

Context = ServerRequestContext[Any, Any]

bus = InMemorySubscriptionBus()
listening = ListenHandler(bus)
subscribed: list[str] = []
resources = [
    types.Resource(
        uri=f"{NAME}://one",
        name="one",
        title=f"One of {NAME}",
        description="The first.\u200b",
        mime_type="text/plain",
        size=3,
        icons=[ICON],
        annotations=types.Annotations(audience=["user"], priority=0.5),
        _meta={"example.com/mark": NAME},
    ),
    types.Resource(uri="shared://all", name="all"),
    types.Resource(uri="context://documents", name="no address of ours"),
]
templates = [
    types.ResourceTemplate(uri_template=f"{NAME}://{{key}}/data{{?part}}", name="data"),
    types.ResourceTemplate(uri_template="shared://{key}/data", name="shared"),
]
prompts = [
    types.Prompt(
        name="greet",
        title="Greet",
        description=f"Greets as {NAME} does.",
        arguments=[types.PromptArgument(name="who", required=True)],
        icons=[ICON],
    ),
    types.Prompt(name=f"{NAME}_only"),
    types.Prompt(name="recall", description="No prompt of ours."),
]
tools = ["touch", "add_resource", "add_prompt", "add_tool", "subscribed", "die"]


async def list_tools(
    _ctx: Context, _params: types.PaginatedRequestParams | None
) -> types.ListToolsResult:
    return types.ListToolsResult(
        tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in tools]
    )


async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    arguments = params.arguments or {}
    text = "done"
    match params.name:
        case "touch" if modern:
            await bus.publish(ResourceUpdated(arguments["uri"]))
        case "touch":
            await ctx.session.send_resource_updated(arguments["uri"])
        case "die":
            os._exit(1)
        case "add_resource":
            resources.append(types.Resource(uri=arguments["uri"], name="new"))
            await _tell(ctx, ResourcesListChanged(), types.ResourceListChangedNotification())
        case "add_prompt":
            prompts.append(types.Prompt(name=arguments["name"]))
            await _tell(ctx, PromptsListChanged(), types.PromptListChangedNotification())
        case "add_tool":
            tools.append(arguments["name"])
            await _tell(ctx, ToolsListChanged(), types.ToolListChangedNotification())
        case "subscribed":
            text = " ".join(sorted(subscribed))
    return types.CallToolResult(content=[types.TextContent(text=text)])


async def _tell(ctx: Context, event: Any, notification: types.ServerNotification) -> None:
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        await bus.publish(event)
    else:
        await ctx.session.send_notification(notification)


async def list_resources(
    _ctx: Context, params: types.PaginatedRequestParams | None
) -> types.ListResourcesResult:
    half = 2  # so that whoever lists has to ask for the second page
    if params is not None and params.cursor == "more":
        return types.ListResourcesResult(resources=resources[half:])
    return types.ListResourcesResult(resources=resources[:half], next_cursor="more")


async def list_templates(
    _ctx: Context, _params: types.PaginatedRequestParams | None
) -> types.ListResourceTemplatesResult:
    return types.ListResourceTemplatesResult(resource_templates=templates)


async def read_resource(
    ctx: Context, params: types.ReadResourceRequestParams
) -> types.ReadResourceResult | types.InputRequiredResult:
    uri = params.uri
    if uri == f"{NAME}://missing":
        modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        raise MCPError(types.INVALID_PARAMS if modern else -32002, "Nothing there.", {"uri": uri})
    if uri == f"{NAME}://broken":
        raise MCPError(-32050, "It is broken.", {"why": "a test"})
    meta = dict(ctx.meta or {})
    said = types.TextResourceContents(
        uri=uri,
        text=f"{uri} of {NAME}\u202e",
        mime_type="text/plain",
        _meta={"example.com/asked": meta.get("example.com/ask"), "example.com/mark": NAME},
    )
    picture = types.BlobResourceContents(uri=f"{uri}#picture", blob=PIXEL, mime_type="image/png")
    return types.ReadResourceResult(contents=[said, picture], _meta={"example.com/whole": True})


async def list_prompts(
    _ctx: Context, _params: types.PaginatedRequestParams | None
) -> types.ListPromptsResult:
    return types.ListPromptsResult(prompts=prompts)


async def get_prompt(
    ctx: Context, params: types.GetPromptRequestParams
) -> types.GetPromptResult | types.InputRequiredResult:
    who = (params.arguments or {}).get("who", "")
    if who == "ask":
        who = await _asked(ctx, params)
        if isinstance(who, types.InputRequiredResult):
            return who
    resource = types.TextResourceContents(uri=f"{NAME}://one", text="one")
    blocks: list[types.ContentBlock] = [
        types.TextContent(text=f"{NAME} greets {who}\u200b", _meta={"example.com/mark": NAME}),
        types.ImageContent(data=PIXEL, mime_type="image/png"),
        types.EmbeddedResource(resource=resource),
        types.ResourceLink(uri=f"{NAME}://one", name="one"),
    ]
    return types.GetPromptResult(
        description=f"From {NAME}.",
        messages=[types.PromptMessage(role="assistant", content=block) for block in blocks],
        _meta={"example.com/whole": True},
    )


async def _asked(ctx: Context, params: Any) -> Any:
    """What the person says, in the way of either era."""
    schema: dict[str, Any] = {"type": "object", "properties": {"who": {"type": "string"}}}
    question = types.ElicitRequest(
        params=types.ElicitRequestFormParams(message="Who?", requested_schema=schema)
    )
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        answer = await ctx.session.elicit_form("Who?", schema, ctx.request_id)
        return (answer.content or {}).get("who", answer.action)
    answers = params.input_responses or {}
    if "who" not in answers:
        return types.InputRequiredResult(input_requests={"who": question}, request_state="asked")
    return f"{(answers['who'].content or {})['who']} ({params.request_state})"


async def complete(_ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
    ref = params.ref.name if isinstance(params.ref, types.PromptReference) else params.ref.uri
    known = dict((params.context.arguments if params.context else None) or {})
    value = f"{NAME} {ref} {params.argument.name}={params.argument.value} {known}"
    return types.CompleteResult(completion=types.Completion(values=[value], total=1))


async def listen(
    ctx: Context, params: types.SubscriptionsListenRequestParams
) -> types.SubscriptionsListenResult:
    heard = params.notifications.resource_subscriptions or []
    subscribed.extend(heard)
    try:
        return await listening(ctx, params)
    finally:
        for uri in heard:
            subscribed.remove(uri)


async def subscribe(_ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    subscribed.append(params.uri)
    return types.EmptyResult()


async def unsubscribe(_ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    subscribed.remove(params.uri)
    return types.EmptyResult()


async def main() -> None:
    server: Server[Any] = Server(
        NAME,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
        on_completion=complete,
        on_subscribe_resource=subscribe,
        on_unsubscribe_resource=unsubscribe,
        on_subscriptions_listen=listen,
    )
    options = server.create_initialization_options(
        NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
    )
    async with stdio_server() as (reader, writer):
        if ERA == "legacy":
            await serve_loop(server, reader, writer, lifespan_state={}, init_options=options)
        else:
            await server.run(reader, writer, options)


if __name__ == "__main__" and not Path("down").exists():
    anyio.run(main)

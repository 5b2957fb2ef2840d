"""What a client gets that lost a stream, from the served application with two sessions in it."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import EventMessage
from mcp.server.transport_security import TransportSecuritySettings

from server.transport.http import RecentEvents, streamable_http_app

HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}


@pytest.fixture
async def web() -> AsyncIterator[httpx2.AsyncClient]:
    async def call_tool(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(text=params.name)])

    app = streamable_http_app(
        Server("toy", on_call_tool=call_tool), TransportSecuritySettings(allowed_hosts=["toy"])
    )
    async with (
        app.router.lifespan_context(app),
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://toy") as client,
    ):
        yield client


async def session(web: httpx2.AsyncClient) -> dict[str, str]:
    """The headers of a new session."""
    said = {"capabilities": {}, "clientInfo": {"name": "lossy", "version": "1"}}
    params = {**said, "protocolVersion": HEADERS["MCP-Protocol-Version"]}
    opened = await web.post("/mcp", headers=HEADERS, json=request(0, "initialize", params))
    return {**HEADERS, "Mcp-Session-Id": opened.headers["mcp-session-id"]}


def request(number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def events(response: httpx2.Response) -> list[dict[str, str]]:
    blocks = response.text.replace("\r\n", "\n").strip("\n").split("\n\n")
    return [dict(line.split(": ", 1) for line in each.split("\n")) for each in blocks if each]


def texts(found: list[dict[str, str]]) -> Iterator[str]:
    for each in found:
        yield json.loads(each["data"])["result"]["content"][0]["text"]


async def call(web: httpx2.AsyncClient, headers: dict[str, str], tool: str) -> httpx2.Response:
    return await web.post(
        "/mcp", headers=headers, json=request(1, "tools/call", {"name": tool, "arguments": {}})
    )


async def test_a_stream_begins_with_an_id_by_which_the_answer_is_sent_once_more(
    web: httpx2.AsyncClient,
) -> None:
    headers = await session(web)
    first, answer = events(await call(web, headers, "saw"))
    assert first["data"] == ""
    assert int(first["retry"]) > 0
    again = await web.get("/mcp", headers={**headers, "Last-Event-ID": first["id"]})
    assert events(again) == [answer]


async def test_a_session_is_never_sent_what_another_one_missed(web: httpx2.AsyncClient) -> None:
    mine, theirs = await session(web), await session(web)
    lost, _ = events(await call(web, theirs, "theirs"))
    await call(web, mine, "mine")
    again = await web.get("/mcp", headers={**mine, "Last-Event-ID": lost["id"]})
    assert list(texts(events(again))) == ["mine"]


async def test_a_stream_that_is_not_over_stays_open_after_what_was_missed() -> None:
    store = RecentEvents()
    sent: list[str | None] = []

    async def send(event: EventMessage) -> None:
        sent.append(event.event_id)

    begun = await store.store_event("7", None)
    step = await store.store_event("7", types.JSONRPCNotification(jsonrpc="2.0", method="step"))
    await store.store_event("8", types.JSONRPCNotification(jsonrpc="2.0", method="other"))
    assert await store.replay_events_after(begun, send) == "7"
    assert sent == [step]
    assert await store.replay_events_after("no such event", send) is None

"""Subscriptions over the transports that clients really use, with Toolcrib a process of its own."""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.subscriptions import ResourceUpdated

from server.clients.locations import command_path
from tests.server.serving import connected, environ, serving

pytestmark = pytest.mark.slow

MODERN = "2026-07-28"
BROWSED = Path(__file__).with_name("browsed_server.py")
URI = "ann://one"


def _environ(place: Path) -> dict[str, str]:
    ann = {"command": sys.executable, "args": [str(BROWSED), "ann", "both"]}
    return environ(place, SERVERS=json.dumps({"ann": ann}), POLICY__ALLOW="ann__*")


@asynccontextmanager
async def _client(transport: str, mode: str, place: Path, **more: Any) -> AsyncIterator[Client]:
    if transport == "stdio":
        command = StdioServerParameters(
            command=str(command_path()), args=["serve"], env=_environ(place)
        )
        async with Client(command, mode=mode, cache=None, **more) as client:
            yield client
        return
    with serving(transport, _environ(place)) as url:
        window = {"Toolcrib-Conversation": "one"}
        async with connected(url, transport, mode, window, cache=None, **more) as client:
            yield client


@pytest.mark.parametrize("transport", ["stdio", "sse", "http"])
async def test_a_client_of_the_handshake_hears_of_a_change(transport: str, tmp_path: Path) -> None:
    heard: list[str] = []
    told = anyio.Event()

    async def take(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.append(str(message.params.uri))
            told.set()

    request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=URI))
    with anyio.fail_after(60):
        async with _client(transport, "legacy", tmp_path, message_handler=take) as client:
            await client.session.send_request(request, types.EmptyResult)
            await client.call_tool("ann__touch", {"uri": URI})
            await told.wait()
    assert heard == [URI]


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_stream_of_a_client_of_2026_07_28_tells_of_a_change_and_holds_up_no_end(
    transport: str, tmp_path: Path
) -> None:
    with anyio.fail_after(60):
        async with (
            _client(transport, MODERN, tmp_path) as client,
            client.listen(resource_subscriptions=[URI]) as stream,
        ):
            assert stream.honored.resource_subscriptions == [URI]
            await client.call_tool("ann__touch", {"uri": URI})
            async for event in stream:
                assert event == ResourceUpdated(URI)
                break

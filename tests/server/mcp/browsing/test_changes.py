"""Changes of function files and of what they offer, as clients of both eras hear of them."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.client._memory import InMemoryTransport
from mcp.client.subscriptions import (
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

from tests.conftest import HELLO
from tests.people import text_at
from tests.server.mcp.browsing.hearing import listening, subscribe

if TYPE_CHECKING:
    from tests.server.mcp.browsing.conftest import Garden

pytestmark = pytest.mark.slow

GARDEN = """
    from tools.authoring import RequestContext, prompt, resource, tool

    @resource("garden://{bed}")
    def bed(bed: str) -> str:
        return bed

    @resource("garden://beds")
    def beds() -> str:
        return "north"

    @prompt()
    def sow() -> str:
        return "Sow."

    @tool
    def water(liters: int) -> int:
        return liters

    @tool
    async def rake(uris: list[str], context: RequestContext) -> None:
        for uri in uris:
            await context.changed(uri)
"""


def save(folder: Path, source: str) -> None:
    (folder / "garden.py").write_text(dedent(source))


async def rake(client: Client, *uris: str) -> None:
    """Has a function in the worker tell that resources changed."""
    result = await client.call_tool("rake", {"uris": list(uris)})
    assert not result.is_error, result.content


async def tools_of(client: Client) -> list[str]:
    return [each.name for each in (await client.list_tools()).tools]


async def test_lists_follow_a_saved_file(served: Garden, folder: Path, mode: str) -> None:
    async with served(GARDEN) as app, listening(app, mode) as (client, heard):
        assert "water" in await tools_of(client)
        save(folder, GARDEN.replace("water(liters", "pour(liters"))
        assert await heard.next() == ToolsListChanged()
        names = await tools_of(client)
        assert ("pour" in names, "water" in names) == (True, False)
        save(folder, GARDEN.replace("garden://beds", "garden://all").replace("sow()", "reap()"))
        lists = {ToolsListChanged(), ResourcesListChanged(), PromptsListChanged()}
        assert await heard.several(3) == lists
        assert (await client.list_resources()).resources[0].uri == "garden://all"
        assert (await client.list_prompts()).prompts[-1].name == "reap"
        assert "water" in await tools_of(client)
        (folder / "more.py").write_text("def more() -> int: return 1")
        assert await heard.next() == ToolsListChanged()
        assert "more" in await tools_of(client)
        (folder / "garden.py").unlink()
        assert await heard.several(3) == lists
        assert "water" not in await tools_of(client)


async def test_a_function_that_only_works_otherwise_changes_no_list(
    served: Garden, folder: Path, mode: str
) -> None:
    async with served(GARDEN) as app, listening(app, mode, "garden://beds") as (client, heard):
        save(folder, GARDEN.replace('"north"', '"south"').replace("return liters", "return 0"))
        called = await client.call_tool("water", {"liters": 3})
        read = await text_at(client, "garden://beds")
        await rake(client, "garden://beds")
        assert await heard.next() == ResourceUpdated("garden://beds")
    assert called.structured_content == {"result": 0}
    assert read == "south"


async def test_only_who_subscribed_to_an_address_hears_that_it_changed(
    served: Garden, mode: str
) -> None:
    async with (
        served(GARDEN) as app,
        listening(app, mode, "garden://north", "garden://beds") as (client, ann),
        listening(app, mode, "garden://south") as (_, bob),
    ):
        await rake(client, "garden://other", "garden://south", "garden://north", "garden://beds")
        await rake(client, "garden://south")
        assert await ann.next() == ResourceUpdated("garden://north")
        assert await ann.next() == ResourceUpdated("garden://beds")
        assert [await bob.next(), await bob.next()] == 2 * [ResourceUpdated("garden://south")]


async def test_a_client_that_does_not_read_holds_nobody_up(served: Garden) -> None:
    async with (
        served(GARDEN) as app,
        listening(app, "legacy", "garden://north") as (client, heard),
        InMemoryTransport(app.server) as (answers, requests),
    ):
        for method, params in (
            ("initialize", HELLO),
            ("notifications/initialized", None),
            ("resources/subscribe", {"uri": "garden://north"}),
        ):
            message = {"jsonrpc": "2.0", "method": method, "params": params}
            if "notifications" in method:
                request: types.JSONRPCMessage = types.JSONRPCNotification(**message)
            else:
                request = types.JSONRPCRequest(id=1, **message)
            await requests.send(SessionMessage(request))
            if isinstance(request, types.JSONRPCRequest):
                await answers.receive()
        with anyio.fail_after(20):
            await rake(client, *["garden://north"] * 200)
            assert await heard.next() == ResourceUpdated("garden://north")


async def test_who_unsubscribes_hears_no_more(served: Garden) -> None:
    async with (
        served(GARDEN) as app,
        listening(app, "legacy", "garden://north", "garden://beds") as (client, heard),
    ):
        params = types.UnsubscribeRequestParams(uri="garden://north")
        request = types.UnsubscribeRequest(params=params)
        await client.session.send_request(request, types.EmptyResult)
        await rake(client, "garden://north", "garden://beds")
        assert await heard.next() == ResourceUpdated("garden://beds")
        with pytest.raises(MCPError, match="Resource not found: context://documents"):
            await subscribe(client, "context://documents")


async def test_changing_lists_are_said_to_change_and_kept_shortly(
    served: Garden, mode: str
) -> None:
    async with served(GARDEN) as app, Client(app.server, mode=mode) as client:
        listed = await client.list_tools()
        has = client.server_capabilities
    if mode == "legacy":
        assert (has.tools, has.prompts) == (
            types.ToolsCapability(list_changed=True),
            types.PromptsCapability(list_changed=True),
        )
        assert has.resources == types.ResourcesCapability(list_changed=True, subscribe=True)
    else:
        assert 0 < listed.ttl_ms <= 10_000

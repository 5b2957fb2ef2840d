from collections.abc import Callable
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError

from server.settings.gateway import ProfileSettings
from tests.conftest import told
from tests.server.mcp.browsing.hearing import listening, subscribe

pytestmark = pytest.mark.slow

MODERN = "2026-07-28"
ACROSS_ERAS = pytest.mark.parametrize(("mode", "era"), [("legacy", "both"), (MODERN, "legacy")])
BY_BOTH_ERAS = pytest.mark.parametrize(
    ("mode", "era"), [(mode, era) for mode in ("legacy", MODERN) for era in ("legacy", "both")]
)


def _unsubscribe(uri: str) -> types.UnsubscribeRequest:
    return types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))


async def _call(client: Client, tool: str, /, **arguments: str) -> str:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return told(result)


async def _until(holds: Callable[[], Any]) -> None:
    with anyio.fail_after(20):
        while not holds():
            await anyio.lowlevel.checkpoint()


@BY_BOTH_ERAS
async def test_a_change_of_a_resource_is_told_to_whoever_subscribed(
    app_before: Any, mode: str, era: str
) -> None:
    async with (
        app_before(("ann", era)) as app,
        listening(app, mode, "ann://one", "ann://two") as (client, heard),
    ):
        assert await _call(client, "ann__subscribed") == "ann://one ann://two"
        await _call(client, "ann__touch", uri="ann://other")
        await _call(client, "ann__touch", uri="ann://two")
        await heard.update("ann://two")
        await _call(client, "ann__touch", uri="ann://one")
        await heard.update("ann://one")
        assert not heard.updates


@ACROSS_ERAS
async def test_who_leaves_takes_its_subscriptions_along(
    app_before: Any, mode: str, era: str
) -> None:
    async with app_before(("ann", era)) as app:
        async with listening(app, mode, "ann://one") as (client, _):
            assert await _call(client, "ann__subscribed") == "ann://one"
            assert app.browsing.subscriptions.subscriber_count
        await _until(lambda: not app.browsing.subscriptions.subscriber_count)
        async with Client(app.server, mode=mode) as client:
            with anyio.fail_after(20):
                while await _call(client, "ann__subscribed"):
                    pass


@pytest.mark.parametrize("era", ["legacy", "both"])
async def test_who_unsubscribes_hears_no_more_and_who_subscribes_again_hears(
    app_before: Any, era: str
) -> None:
    async with (
        app_before(("ann", era)) as app,
        listening(app, "legacy", "ann://one") as (client, heard),
    ):
        await subscribe(client, "ann://one")  # once more
        await client.session.send_request(_unsubscribe("ann://one"), types.EmptyResult)
        await client.session.send_request(_unsubscribe("ann://one"), types.EmptyResult)
        with anyio.fail_after(20):
            while await _call(client, "ann__subscribed"):
                pass
        await _call(client, "ann__touch", uri="ann://one")
        await subscribe(client, "ann://one")
        await _call(client, "ann__touch", uri="ann://one")
        await heard.update("ann://one")
        assert not heard.updates


@ACROSS_ERAS
async def test_a_subscription_outlives_its_server_and_tells_that_something_was_missed(
    app_before: Any, mode: str, era: str
) -> None:
    async with (
        app_before(("ann", era)) as app,
        listening(app, mode, "ann://one") as (client, heard),
    ):
        assert (await client.call_tool("ann__die", {})).is_error
        await heard.update("ann://one")
        assert await _call(client, "ann__subscribed") == "ann://one"


async def test_a_namespaced_resource_is_told_of_under_the_address_that_was_subscribed(
    app_before: Any, mode: str
) -> None:
    address = "toolcrib://ann/shared://all"
    async with (
        app_before(("bob", "both"), ("ann", "both")) as app,
        listening(app, mode, address) as (client, heard),
    ):
        await _call(client, "bob__touch", uri="shared://all")
        await _call(client, "ann__touch", uri="shared://all")
        await heard.update(address)
        assert not heard.updates


@ACROSS_ERAS
async def test_lists_that_change_at_a_server_are_told_once_ours_has_changed(
    app_before: Any, mode: str, era: str
) -> None:
    async with app_before(("ann", era)) as app:
        async with Client(app.server, mode=mode) as first:
            await first.list_prompts()  # by which the server was listed
        async with listening(app, mode) as (client, heard):
            await _call(client, "ann__add_prompt", name="new")
            with anyio.fail_after(20):
                while "ann__new" not in [
                    each.name for each in (await client.list_prompts()).prompts
                ]:
                    await heard.changed(PromptsListChanged())
            await _call(client, "ann__add_resource", uri="ann://new")
            with anyio.fail_after(20):
                while "ann://new" not in [
                    each.uri for each in (await client.list_resources()).resources
                ]:
                    await heard.changed(ResourcesListChanged())


@ACROSS_ERAS
async def test_the_list_of_tools_changes_with_a_server_where_it_has_that_servers_tools(
    app_before: Any, mode: str, era: str
) -> None:
    async with (
        app_before(("ann", era), surface=("lean", "server:ann")) as app,
        listening(app, mode) as (client, heard),
    ):
        before = {each.name for each in (await client.list_tools()).tools}
        await _call(client, "ann__add_tool", name="new")
        with anyio.fail_after(20):
            while (now := {each.name for each in (await client.list_tools()).tools}) == before:
                await heard.changed(ToolsListChanged())
    assert now - before == {"ann__new"}
    assert app.server.get_capabilities(protocol_version=MODERN).tools.list_changed


async def test_nobody_hears_of_a_server_that_a_profile_hides(app_before: Any) -> None:
    profiles = {"careful": ProfileSettings(clients=("mcp",), deny=("server:ann",))}
    servers = (("ann", "both"), ("bob", "both"))
    async with app_before(*servers, profiles=profiles) as app:
        async with Client(app.server, mode="legacy") as client:
            with pytest.raises(MCPError) as failure:
                await subscribe(client, "ann://one")
            assert failure.value.code == -32002
        async with (
            Client(app.server) as client,
            client.listen(resource_subscriptions=["ann://one", "bob://one"]) as stream,
        ):
            assert stream.honored.resource_subscriptions == ["bob://one"]
        async with listening(app, "legacy") as (client, heard):
            await client.list_prompts()  # whose answer comes after it was noticed
            app.browsing.subscriptions.changed("ann", {"prompts"})
            app.browsing.subscriptions.changed("bob", {"resources"})
            await heard.changed(ResourcesListChanged())
            assert PromptsListChanged() not in heard.lists


async def test_what_nobody_has_or_tells_of_is_not_subscribed(app_before: Any) -> None:
    async with app_before(("ann", "both")) as app:
        async with Client(app.server, mode="legacy") as client:
            for uri in ("nobody://one", "context://documents"):
                with pytest.raises(MCPError) as failure:
                    await subscribe(client, uri)
                assert failure.value.code == -32002
        async with (
            Client(app.server) as client,
            client.listen(
                resource_subscriptions=["context://documents"], tools_list_changed=True
            ) as stream,
        ):
            assert not stream.honored.resource_subscriptions
            assert not stream.honored.tools_list_changed


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_what_is_said_to_change_is_what_changes(browsed: Any, mode: str) -> None:
    async with browsed(("ann", "both"), mode=mode) as client:
        before = client.server_capabilities
    async with browsed(mode=mode) as client:
        alone = client.server_capabilities
    assert before.resources == types.ResourcesCapability(subscribe=True, list_changed=True)
    assert before.prompts == types.PromptsCapability(list_changed=True)
    assert before.tools == types.ToolsCapability(list_changed=False)
    assert alone.resources == types.ResourcesCapability(subscribe=True, list_changed=True)
    assert alone.prompts == types.PromptsCapability(list_changed=False)
    assert alone.tools == types.ToolsCapability(list_changed=False)

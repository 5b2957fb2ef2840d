"""What the user's settings change about another server's tools: definition, limits and cache."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client._memory import InMemoryTransport
from pydantic import ValidationError

from server.app import App
from server.settings.gateway import ProfileSettings, ServerSettings
from server.settings.safety import PolicySettings
from storage.models import Identity
from tests.conftest import told
from tests.server.serving import running
from tools.core.context import Origin, RequestContext

CLERK = Path(__file__).with_name("clerk_server.py")

pytestmark = pytest.mark.slow


@asynccontextmanager
async def clerk(place: Path, *, allow: Any = ("*",), **settings: Any) -> AsyncIterator[App]:
    profiles = settings.pop("profiles", {})
    server = ServerSettings(command=sys.executable, args=(str(CLERK),), **settings)
    policy = PolicySettings(allow=allow)
    async with running(
        place, policy=policy, servers={"clerk": server}, profiles=profiles, surface=["full"]
    ) as app:
        await app.gateway.ready()
        yield app


def client_of(app: App) -> Client:
    return Client(InMemoryTransport(app.server), mode="2026-07-28")


async def said(client: Client, tool: str, **arguments: Any) -> str:
    return told(await client.call_tool(tool, arguments))


OVERRIDE = {
    "title": "Find",
    "description": "Finds notes.",
    "annotations": {"read_only": False, "destructive": False},
    "arguments": {"folder": {"value": "notes"}, "limit": {"default": 5}, "debug": {"hidden": True}},
}


async def test_clients_see_the_user_s_definition(tmp_path: Path) -> None:
    async with clerk(tmp_path, tools={"look": OVERRIDE}) as app, client_of(app) as client:
        tools = {each.name: each for each in (await client.list_tools()).tools}
    look = tools["clerk__look"]
    assert (look.title, look.description) == ("Find", "Finds notes.")
    assert look.annotations is not None
    assert (look.annotations.read_only_hint, look.annotations.destructive_hint) == (False, False)
    limit = {"type": "integer", "default": 5}
    assert look.input_schema["properties"] == {"query": {"type": "string"}, "limit": limit}
    assert look.input_schema["required"] == ["query"]
    assert "folder" in tools["clerk__put"].input_schema["properties"]


async def test_the_server_gets_fixed_and_default_arguments_and_no_hidden_ones(
    tmp_path: Path,
) -> None:
    async with clerk(tmp_path, tools={"look": OVERRIDE}) as app, client_of(app) as client:
        full = "[('folder', 'notes'), ('limit', 5), ('query', 'x')]"
        assert await said(client, "clerk__look", query="x") == f"1 {full}"
        assert "('limit', 9)" in await said(client, "clerk__look", query="x", limit=9)
        for wrong in ({"folder": "secret"}, {"debug": True}, {"debug": None}):
            answer = await said(client, "clerk__look", query="x", **wrong)
            assert answer.startswith("invalid_arguments")
            assert "servers.clerk.tools.look.arguments" in answer
        calls = {"calls": [{"name": "clerk__look", "arguments": {"query": "y"}}]}
        assert "('folder', 'notes')" in await said(client, "call_tools", **calls)


async def test_rules_judge_the_default_that_is_sent(tmp_path: Path) -> None:
    rules, tools = ("clerk__look(limit=5)",), {"look": OVERRIDE}
    async with clerk(tmp_path, allow=rules, tools=tools) as app, client_of(app) as client:
        assert (await said(client, "clerk__look", query="x")).startswith("1 ")
        other = await said(client, "clerk__look", query="x", limit=6)
        assert other.startswith("approval_required")


async def test_the_user_s_claim_that_a_tool_reads_is_believed(tmp_path: Path) -> None:
    claims = {"put": {"annotations": {"read_only": True}}}
    async with clerk(tmp_path, allow=(), tools=claims) as app, client_of(app) as client:
        assert (await said(client, "clerk__put")).startswith("1 ")
        assert (await said(client, "clerk__look")).startswith("approval_required")


@pytest.mark.parametrize("wrong", [{}, {"value": 1, "default": 2}, {"value": 1, "hidden": True}])
def test_an_argument_is_fixed_or_has_a_default_or_is_hidden(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="one of value, default and hidden"):
        ServerSettings.model_validate(
            {"command": "x", "tools": {"look": {"arguments": {"a": wrong}}}}
        )


@pytest.mark.parametrize("limit", ["per_minute", "per_conversation"])
async def test_a_server_s_calls_are_limited(limit: str, tmp_path: Path) -> None:
    async with clerk(tmp_path, **{limit: 2}) as app, client_of(app) as client:
        assert (await said(client, "clerk__put")).startswith("1 ")
        calls = {"calls": [{"name": "clerk__put", "arguments": {}} for _ in range(2)]}
        answer = await said(client, "call_tools", **calls)
        assert "2 []" in answer
        assert "rate_limited" in answer
        answer = await said(client, "clerk__put")
        assert answer.startswith("rate_limited: The call was not made: [servers.clerk] allows 2 in")
        assert f"raise servers.clerk.{limit}" in answer
        assert not (await client.call_tool("list_files", {})).is_error


async def test_a_profile_s_calls_are_limited_for_its_clients_alone(tmp_path: Path) -> None:
    profiles = {
        "busy": ProfileSettings(clients=("mcp*",), per_minute=2),
        "other": ProfileSettings(clients=("*",)),
    }
    async with clerk(tmp_path, profiles=profiles) as app, client_of(app) as client:
        assert (await said(client, "call_tool", name="clerk__put", arguments={})).startswith("1 ")
        assert not (await client.call_tool("list_files", {})).is_error
        answer = await said(client, "list_files")
        assert answer.startswith("rate_limited: The call was not made: [profiles.busy] allows 2")


async def test_answers_of_tools_that_read_are_kept_until_another_tool_is_called(
    tmp_path: Path,
) -> None:
    async with clerk(tmp_path, trusted=True, cache_seconds=60) as app, client_of(app) as client:
        assert await said(client, "clerk__look", query="a") == "1 [('query', 'a')]"
        assert await said(client, "clerk__look", query="a") == "1 [('query', 'a')]"
        assert await said(client, "clerk__look", query="b") == "2 [('query', 'b')]"
        assert (await said(client, "clerk__put")).startswith("3 ")
        assert await said(client, "clerk__look", query="a") == "4 [('query', 'a')]"


async def test_nothing_is_kept_of_tools_that_may_do_anything_or_are_set_to_zero(
    tmp_path: Path,
) -> None:
    never = {"peek": {"cache_seconds": 0}}
    for trusted, tool in ((True, "clerk__peek"), (False, "clerk__look")):
        settings = {"trusted": trusted, "cache_seconds": 60, "tools": never}
        async with clerk(tmp_path, **settings) as app, client_of(app) as client:
            for number in (1, 2):
                assert await said(client, tool) == f"{number} []"


async def test_answers_stay_with_their_identity_and_conversation(tmp_path: Path) -> None:
    async with clerk(tmp_path, trusted=True, tools={"look": {"cache_seconds": 60}}) as app:

        async def told_to(user: str, session: str) -> str:
            origin = Origin(Identity(user_id=user), session_id=session)
            return (await app.manager.execute("clerk__look", {}, RequestContext(origin))).text

        assert await told_to("ann", "1") == "1 []"
        assert await told_to("ann", "1") == "1 []"
        assert await told_to("bob", "1") == "2 []"
        assert await told_to("ann", "2") == "1 []"  # each conversation has its own clerk
        assert await told_to("ann", "1") == "1 []"

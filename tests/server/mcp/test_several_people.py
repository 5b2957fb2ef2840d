"""One real server for several people, each with a token of their own."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult

from tests.conftest import told
from tests.people import text_at
from tests.server.serving import connected, environ, serving

pytestmark = pytest.mark.slow

TOKENS = {
    "ann": {"token": "token-of-ann", "user_id": "ann"},
    "bob": {"token": "token-of-bob", "user_id": "bob"},
    "bobs-phone": {"token": "token-of-phone", "user_id": "bob", "device_id": "phone"},
}
OWNER = "token-of-owner"
SETTINGS = {
    "HTTP__TOKEN": OWNER,
    "HTTP__TOKENS": json.dumps(TOKENS),
    "POLICY__ALLOW": "scope:context",  # nobody is there to be asked
    "RESULTS": "both",
}
WAYS = ["legacy", "2026-07-28", "sse"]
BY_WAY = pytest.mark.parametrize("way", WAYS)
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving("http", environ(tmp_path_factory.mktemp("http"), **SETTINGS)) as url:
        yield url


@pytest.fixture(scope="module")
def sse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serving("sse", environ(tmp_path_factory.mktemp("sse"), **SETTINGS)) as url:
        yield url


As = Callable[[str], AbstractAsyncContextManager[Client]]


@pytest.fixture
def way() -> str:
    """The way to connect, where a test does not go through all."""
    return "2026-07-28"


@pytest.fixture
def as_(http: str, sse: str, way: str) -> As:
    """Connects in one of the three ways with a token."""

    @asynccontextmanager
    async def connect(token: str) -> AsyncIterator[Client]:
        url, mode = (sse, "legacy") if way == "sse" else (http, way)
        async with connected(url, way, mode, bearer(token)) as client:
            yield client

    return connect


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def keep(client: Client, text: str, **whose: str) -> CallToolResult:
    return await client.call_tool(
        "add_document", {"text": text, "title": "Secret", "raw_id": "secret", **whose}
    )


async def found(client: Client, **whose: str) -> str:
    """All that a search for the secret tells."""
    result = await client.call_tool("query", {"query": "secret harbour", **whose})
    assert not result.is_error, result.content
    return str(result.structured_content)


@BY_WAY
async def test_the_same_calls_of_two_people_never_meet(as_: As) -> None:
    async with as_("token-of-ann") as ann, as_("token-of-bob") as bob:
        await keep(ann, "Ann's secret harbour is Genoa.")
        await keep(bob, "Bob's secret harbour is Turku.")
        for client, own, others in ((ann, "Genoa", "Turku"), (bob, "Turku", "Genoa")):
            assert own in await found(client)
            assert others not in await found(client)
            listing = await client.call_tool("retrieve_document_context", {})
            assert others not in str(listing.structured_content)
            read = await client.call_tool("get_document", {"raw_type": "text", "raw_id": "secret"})
            assert own in str(read.structured_content)
        deleted = await ann.call_tool("delete_document", {"raw_type": "text", "raw_id": "secret"})
        assert not deleted.is_error
        assert "Turku" in await found(bob)


async def test_resources_are_those_of_the_token(as_: As) -> None:
    uri = "context://documents/text/secret"
    async with as_("token-of-ann") as ann, as_("token-of-bob") as bob:
        await keep(ann, "Ann's secret harbour is Genoa.")
        await bob.call_tool("delete_document", {"raw_type": "text", "raw_id": "secret"})
        assert uri in {str(each.uri) for each in (await ann.list_resources()).resources}
        assert uri not in {str(each.uri) for each in (await bob.list_resources()).resources}
        assert "Genoa" in await text_at(ann, uri)
        with pytest.raises(MCPError, match="not found"):
            await bob.read_resource(uri)


async def test_prompts_and_views_are_those_of_the_token(as_: As) -> None:
    async with as_("token-of-ann") as ann, as_("token-of-bob") as bob:
        await keep(ann, "Ann's secret harbour is Genoa.")
        await keep(bob, "Bob's secret harbour is Turku.")
        for client, own, others in ((ann, "Genoa", "Turku"), (bob, "Turku", "Genoa")):
            recalled = await client.get_prompt("recall", {"topic": "secret harbour"})
            viewed = await client.read_resource("context://relevant?topic=secret%20harbour")
            for told in (str(recalled.messages), str(viewed.contents)):
                assert own in told
                assert others not in told


async def test_a_call_through_call_tool_is_the_tokens_too(as_: As) -> None:
    async with as_("token-of-ann") as ann, as_("token-of-bob") as bob:
        await keep(bob, "Bob's secret harbour is Turku.")
        asked: dict[str, Any] = {"query": "secret harbour"}
        for arguments in (asked, asked | {"user_id": "bob"}):
            called = {"name": "query", "arguments": arguments}
            result = await ann.call_tool("call_tool", called)
            assert result.is_error is ("user_id" in arguments)
            assert "Turku" not in str(result)


@pytest.mark.parametrize(
    ("token", "named"),
    [
        ("token-of-ann", {"user_id": "bob"}),
        ("token-of-ann", {"user_id": "local"}),
        ("token-of-ann", {"user_id": "ANN"}),
        ("token-of-phone", {"device_id": ""}),
        ("token-of-phone", {"device_id": "desk"}),
        (OWNER, {"user_id": "ann"}),
    ],
)
async def test_naming_anybody_else_is_denied_and_changes_nothing(
    as_: As, token: str, named: dict[str, str]
) -> None:
    source = {"raw_type": "text", "raw_id": "mine"}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("query", {"query": "harbour"}),
        ("retrieve_document_context", {}),
        ("get_document", source),
        ("delete_document", source),
        ("add_document", {"text": "Not mine.", "title": "x", **source}),
    ]
    async with as_(token) as client, as_("token-of-bob") as bob, as_(OWNER) as owner:
        for other in (bob, owner):
            await other.call_tool("add_document", {"text": "Mine.", "title": "x", **source})
        for name, arguments in calls:
            result = await client.call_tool(name, arguments | named)
            assert result.is_error, name
            assert told(result).startswith("permission_denied: ")
        for other in (bob, owner):
            read = await other.call_tool("get_document", source)
            assert read.structured_content["chunks"][0]["content"] == "Mine."


async def test_a_token_may_name_what_it_is_and_any_device_where_it_has_none(as_: As) -> None:
    async with as_("token-of-bob") as bob, as_("token-of-phone") as phone:
        await keep(bob, "The secret harbour of the desk is Oulu.", device_id="desk")
        await keep(phone, "The secret harbour of the phone is Vaasa.")
        assert "Vaasa" in await found(bob, user_id="bob", device_id="phone")
        assert "Oulu" not in await found(bob, device_id="phone")
        assert "Oulu" in await found(bob)
        assert "Vaasa" in await found(phone, user_id="bob", device_id="phone")
        assert "Oulu" not in await found(phone)


@BY_WAY
async def test_progress_reaches_only_who_asked(as_: As) -> None:
    heard: dict[str, list[float]] = {"ann": [], "bob": []}
    text = "\n\n".join(f"# Part {number}\n\n{'word ' * 200}" for number in range(200))

    async def add(name: str, client: Client) -> None:
        async def listen(progress: float, total: float | None, message: str | None) -> None:
            heard[name].append(progress)

        arguments = {"text": f"{name} {text}", "title": "long"}
        result = await client.call_tool("add_document", arguments, progress_callback=listen)
        assert not result.is_error, result.content

    async with as_("token-of-ann") as ann, as_("token-of-bob") as bob:
        async with anyio.create_task_group() as group:
            group.start_soon(add, "ann", ann)
            group.start_soon(keep, bob, "Short.")
        for client in (ann, bob):
            await client.call_tool("delete_document", {"raw_type": "text", "raw_id": "long"})
    assert heard["ann"]
    assert heard["bob"] == []


PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "thief", "version": "1"},
    },
}


@pytest.mark.parametrize("thief", ["token-of-bob", OWNER, "token-of-phone"])
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_session_is_of_no_use_under_another_token(http: str, thief: str, method: str) -> None:
    opened = httpx2.post(http, json=INITIALIZE, headers=bearer("token-of-ann") | ACCEPT)
    session = {**ACCEPT, "Mcp-Session-Id": opened.headers["mcp-session-id"]}
    stolen = httpx2.request(method, http, json=PING, headers=bearer(thief) | session)
    assert stolen.status_code == 404
    assert httpx2.post(http, json=PING, headers=bearer("token-of-ann") | session).is_success


@pytest.mark.parametrize("thief", ["token-of-bob", OWNER, "token-of-phone"])
def test_a_stream_takes_no_messages_under_another_token(sse: str, thief: str) -> None:
    with httpx2.stream("GET", sse, headers=bearer("token-of-ann")) as stream:
        lines = stream.iter_lines()  # kept: to drop it is to close the stream
        messages = next(line for line in lines if "session_id=" in line)
        url = httpx2.URL(sse).join(messages.removeprefix("data: "))
        assert httpx2.post(url, json=PING, headers=bearer(thief)).status_code == 404
        assert httpx2.post(url, json=PING, headers=bearer("token-of-ann")).status_code == 202


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer"},
        bearer("wrong"),
        bearer("ann"),
        bearer("token-of-ann-and-more"),
    ],
)
def test_without_a_right_token_nothing_is_answered(
    http: str, sse: str, headers: dict[str, str]
) -> None:
    asked = httpx2.post(http, json=INITIALIZE, headers=headers | ACCEPT)
    messages = sse.replace("/sse", "/messages/?session_id=0")
    posted = httpx2.post(messages, json=PING, headers=headers)
    streamed = httpx2.get(sse, headers=headers)
    assert {each.status_code for each in (asked, posted, streamed)} == {401}

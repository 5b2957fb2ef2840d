"""Which conversation a request belongs to, in every transport and era of the protocol."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import Implementation
from starlette.requests import Request

from server.clients.locations import command_path
from server.mcp.sessions import CONVERSATION_KEYS, MOST, Sessions, may_be_shared
from storage.models import IDLE_SECONDS, Identity
from tests.server.serving import connected, environ, serving

pytestmark = pytest.mark.slow

ANN = Identity("ann")
BOB = Identity("bob")
MODERN = "2026-07-28"
LEGACY = "2025-11-25"
IN_MEMORY = [*(("http", era) for era in ("legacy", MODERN)), ("sse", "legacy")]


def asking(
    era: str = MODERN, client: str = "Cursor", meta: dict[str, Any] | None = None, **request: Any
) -> Any:
    """A request as the SDK hands it over."""
    params = SimpleNamespace(client_info=Implementation(name=client, version="1"))
    scope = {"type": "http", "headers": [], "query_string": b"", **request}
    return SimpleNamespace(
        session=SimpleNamespace(client_params=params if client else None),
        request=Request(scope) if request else None,
        protocol_version=era,
        meta=meta,
    )


def with_id(transport_id: str, era: str = LEGACY) -> Any:
    return asking(era, headers=[(b"mcp-session-id", transport_id.encode())])


class Clock:
    """Time that passes when it is told to."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def session(sessions: Sessions, ctx: Any, identity: Identity = ANN) -> str:
    return sessions.of(ctx, identity).session_id


@pytest.mark.parametrize("era", [LEGACY, MODERN])
def test_a_process_without_http_has_one(era: str) -> None:
    sessions = Sessions()
    assert sessions.of(asking(era), ANN) == sessions.of(asking(era), BOB)
    assert session(sessions, asking(era)) == sessions.own
    assert Sessions().own != sessions.own


def test_the_client_is_named_as_it_says() -> None:
    assert Sessions().of(asking(client="Claude"), ANN).client == "Claude"
    assert Sessions().of(asking(client=""), ANN).client == ""
    assert len(Sessions().of(asking(client="x" * 999), ANN).client) == 100


def test_the_transports_id_makes_one_and_is_told_to_nobody() -> None:
    sessions = Sessions()
    first, second = (session(sessions, with_id(name)) for name in ("one", "two"))
    assert first != second
    assert first == session(sessions, with_id("one"))
    assert "one" not in first
    assert session(sessions, asking(LEGACY, query_string=b"session_id=one")) == first


def test_the_same_id_of_two_people_is_two() -> None:
    sessions = Sessions()
    assert session(sessions, with_id("one"), ANN) != session(sessions, with_id("one"), BOB)
    parts = Identity("a", "b", "c"), Identity("ab", "", "c")
    assert len({session(sessions, with_id("one"), each) for each in parts}) == 2


def test_an_id_that_the_protocol_does_not_know_counts_for_nothing() -> None:
    sessions = Sessions()
    assert session(sessions, with_id("one", MODERN)) == session(sessions, with_id("two", MODERN))


@pytest.mark.parametrize("key", CONVERSATION_KEYS)
def test_without_sessions_the_client_names_its_conversation(key: str) -> None:
    sessions = Sessions()
    web: dict[str, Any] = {"method": "POST"}
    header: dict[str, Any] = {"headers": [(b"toolcrib-conversation", b"one")]}
    first = session(sessions, asking(**header))
    assert first == session(sessions, asking(**header))
    assert first != session(sessions, asking(**header), BOB)
    assert first != session(sessions, asking(client="Codex", **header))
    assert first == session(sessions, asking(meta={key: "one"}, **web))
    assert first != session(sessions, asking(meta={key: "two"}, **web))
    assert not may_be_shared(first)


@pytest.mark.parametrize(
    "given", [None, {}, {CONVERSATION_KEYS[0]: " "}, {CONVERSATION_KEYS[0]: 7}]
)
def test_a_conversation_without_a_name_may_be_shared(given: dict[str, Any] | None) -> None:
    assert may_be_shared(session(Sessions(), asking(meta=given, method="POST")))
    assert not may_be_shared(session(Sessions(), with_id("one")))
    assert not may_be_shared(session(Sessions(), asking()))


def test_without_sessions_it_is_a_client_of_somebody_until_it_is_idle() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    web: dict[str, Any] = {"method": "POST"}
    first = session(sessions, asking(**web))
    assert session(sessions, asking(client="Codex", **web)) != first
    assert session(sessions, asking(**web), BOB) != first
    elsewhere = asking(**web)
    elsewhere.request.scope["client"] = ("10.0.0.1", 1)
    assert session(sessions, elsewhere) != first
    for _ in range(5):
        clock.now += IDLE_SECONDS - 1
        assert session(sessions, asking(**web)) == first
    clock.now += IDLE_SECONDS + 1
    second = session(sessions, asking(**web))
    assert second != first
    assert session(sessions, asking(**web)) == second


def test_no_more_are_kept_in_mind_than_fit() -> None:
    sessions = Sessions()
    web: dict[str, Any] = {"method": "POST"}
    first = session(sessions, asking(**web))
    for number in range(MOST):
        session(sessions, asking(client=f"client{number}", **web))
    assert len(sessions._open) == MOST
    assert session(sessions, asking(**web)) != first


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """The address of a real server of some transport."""
    with (
        serving("http", environ(tmp_path_factory.mktemp("http"), RESULTS="both")) as http,
        serving("sse", environ(tmp_path_factory.mktemp("sse"), RESULTS="both")) as sse,
    ):
        yield {"http": http, "sse": sse}.__getitem__


async def events(client: Client, **asked: Any) -> list[dict[str, Any]]:
    result = await client.call_tool("query_events", {"filter_by": "recent", **asked})
    assert not result.is_error, result.content
    assert result.structured_content is not None
    found: list[dict[str, Any]] = result.structured_content["events"]
    return found


@pytest.mark.parametrize(("transport", "era"), IN_MEMORY)
async def test_each_client_of_a_server_has_its_own_session(
    address: Callable[[str], str], transport: str, era: str
) -> None:
    url = address(transport)
    for name in (f"first-{era}", f"second-{era}"):
        async with connected(
            url, transport, era, client_info=Implementation(name=name, version="1")
        ) as client:
            await client.call_tool("list_directory", {"path": "."})
            await client.call_tool("query", {"query": "kites"})
            this = await events(client, session="this")
            assert [each["action"] for each in this] == ["query", "list_directory"]
            assert {each["client"] for each in this} == {name}
            assert len({each["session"] for each in this}) == 1
    async with connected(
        url, transport, era, client_info=Implementation(name="third", version="1")
    ) as client:
        assert await events(client, session="this", outcome="ok") == []
        known = await events(client, filter_by="node", value=f"first-{era}")
        assert {each["action"] for each in known} == {"list_directory", "query", "query_events"}
        one = known[0]["session"]
        assert len(await events(client, session=one)) == len(known)


async def test_a_process_over_stdio_is_one_session_and_the_next_another(
    tmp_path: Path, mode: str
) -> None:
    parameters = StdioServerParameters(
        command=str(command_path()),
        args=["serve", "--root", str(tmp_path), "--data-dir", str(tmp_path / "data")],
        env={"TOOLCRIB_RESULTS": "both"},
    )
    seen = []
    with anyio.fail_after(60):
        for _ in range(2):
            async with Client(parameters, mode=mode) as client:
                await client.call_tool("list_directory", {"path": "."})
                (this,) = await events(client, session="this")
                seen.append(this["session"])
                found = await events(client, filter_by="action", value="list_directory")
                assert [each["session"] for each in found] == seen[::-1]
    assert len(set(seen)) == 2

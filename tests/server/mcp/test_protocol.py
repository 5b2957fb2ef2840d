from collections.abc import Callable
from typing import Any

import anyio
import jsonschema  # type: ignore[import-untyped]  # ships no types
import pytest
from mcp import Client
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from pydantic import BaseModel
from pydantic_core import from_json, to_json

from server.mcp.wire import MAX_LEVELS
from storage.models import Identity
from tests.conftest import told
from tools.core.context import RequestContext
from tools.core.spec import Effect, ToolScope, tool

READ = {Effect.READ}
ERAS = ["legacy", "2026-07-28"]
IDENTITY = Identity(user_id="ann")

ServerOf = Callable[..., Server[Any]]


class Word(BaseModel):
    """One word."""

    text: str
    count: int


class Words(BaseModel):
    """The words of a text."""

    words: list[Word]


@tool(scope=ToolScope.SANDBOXED, effects=READ, aliases=("wc",), title="Count the words")
def count_words(text: str) -> Words:
    """Counts words."""
    found = text.split()
    return Words(words=[Word(text=one, count=found.count(one)) for one in sorted(set(found))])


@tool(scope=ToolScope.CONTEXT, effects={Effect.WRITE}, destructive=True, idempotent=True)
def drop(name: str, times: int = 1, *, hard: bool = False) -> str:
    """Drops something."""
    return f"{name} {times} {hard}"


@tool(scope=ToolScope.MCP, effects={Effect.READ, Effect.EXTERNAL})
def ask_far_away() -> str:
    """Asks far away."""
    return "nobody there"


@tool(scope=ToolScope.SANDBOXED, effects=READ)
def crash() -> None:
    """Crashes."""
    raise RuntimeError("No road.")


@tool(scope=ToolScope.SANDBOXED, effects=READ)
def odd_name() -> str:
    """Gives a file name that is not UTF-8."""
    return b"caf\xe9.txt".decode(errors="surrogateescape")


@tool(scope=ToolScope.SANDBOXED, effects=READ)
def whose(context: RequestContext) -> str:
    """Says whose call it is."""
    return context.identity.user_id


@tool(scope=ToolScope.SANDBOXED, effects=READ)
def dig(levels: int) -> Any:
    """Digs a hole."""
    hole: Any = 0
    for _ in range(levels):
        hole = [hole]
    return hole


ALL = (count_words, drop, ask_far_away, crash, odd_name, whose)


async def test_both_eras_and_every_order_of_adding_list_the_same(server_of: ServerOf) -> None:
    listings = []
    for mode in ERAS:
        for functions in (ALL, ALL[::-1]):
            async with Client(server_of(*functions), mode=mode) as client:
                listings.append((await client.list_tools()).tools)
    assert all(listing == listings[0] for listing in listings)
    names = [listed.name for listed in listings[0]]
    assert names == sorted(function.__name__ for function in ALL)


async def test_a_call_leaves_the_list_as_it_was(server_of: ServerOf, mode: str) -> None:
    async with Client(server_of(*ALL), mode=mode) as client:
        before = await client.list_tools(cache_mode="bypass")
        await client.call_tool("wc", {"text": "a"})
        after = await client.list_tools(cache_mode="bypass")
    assert before.tools == after.tools


async def test_hints_follow_from_the_effects(server_of: ServerOf, mode: str) -> None:
    async with Client(server_of(*ALL), mode=mode) as client:
        listing = {listed.name: listed for listed in (await client.list_tools()).tools}
    hints = {
        name: (
            hints.read_only_hint,
            hints.destructive_hint,
            hints.idempotent_hint,
            hints.open_world_hint,
        )
        for name, listed in listing.items()
        if (hints := listed.annotations)
    }
    assert hints["count_words"] == (True, False, True, False)
    assert hints["drop"] == (False, True, True, False)
    assert hints["ask_far_away"] == (False, False, False, True)
    assert listing["count_words"].title == "Count the words"


async def test_the_modern_era_may_keep_the_list(server_of: ServerOf) -> None:
    async with Client(server_of(*ALL), mode="2026-07-28") as client:
        listing = await client.list_tools()
    assert listing.ttl_ms > 0
    assert listing.cache_scope == "private"


async def test_a_cursor_that_nobody_gave_out_is_invalid(server_of: ServerOf, mode: str) -> None:
    async with Client(server_of(*ALL), mode=mode) as client:
        with pytest.raises(MCPError, match="'page-two'") as caught:
            await client.list_tools(cursor="page-two")
    assert caught.value.code == INVALID_PARAMS


@pytest.mark.parametrize("name", ["count_words", "wc"])
async def test_a_success_is_structured_and_text(server_of: ServerOf, mode: str, name: str) -> None:
    async with Client(server_of(*ALL), mode=mode) as client:
        result = await client.call_tool(name, {"text": "a b a"})
    assert not result.is_error
    words = [{"text": "a", "count": 2}, {"text": "b", "count": 1}]
    assert result.structured_content == {"words": words}
    assert told(result)


@pytest.mark.parametrize(
    ("name", "arguments", "error_type", "hint"),
    [
        ("count_word", {}, "unknown_tool", "count_words"),
        ("count_words", {}, "invalid_arguments", "text"),
        ("count_words", {"text": 7}, "invalid_arguments", "text"),
        ("count_words", {"text": None}, "invalid_arguments", "text"),
        ("count_words", {"text": "a", "txet": "b"}, "invalid_arguments", "txet"),
        ("drop", {"name": "a", "times": "many"}, "invalid_arguments", "times"),
        ("drop", {"name": "a", "times": 1.5}, "invalid_arguments", "times"),
        ("drop", {"name": ["a"]}, "invalid_arguments", "name"),
        ("drop", {"name": "a", "hard": {}}, "invalid_arguments", "hard"),
        ("crash", {}, "tool_failed", "RuntimeError: No road."),
    ],
)
async def test_a_failure_is_a_result_that_says_what_was_wrong(  # noqa: PLR0913, PLR0917  # one case is six words
    server_of: ServerOf, mode: str, name: str, arguments: dict[str, Any], error_type: str, hint: str
) -> None:
    async with Client(server_of(*ALL), mode=mode) as client:
        result = await client.call_tool(name, arguments)
    assert result.is_error
    assert result.structured_content is None
    assert told(result).startswith(f"{error_type}: ")
    assert hint in told(result)


async def test_the_listed_output_schema_is_whole_and_fits_what_is_structured(
    server_of: ServerOf, mode: str
) -> None:
    async with Client(server_of(*ALL), mode=mode) as client:
        listing = {listed.name: listed for listed in (await client.list_tools()).tools}
        success = await client.call_tool("count_words", {"text": "a"})
        failure = await client.call_tool("count_words", {})
    schema = listing["count_words"].output_schema
    fits = jsonschema.Draft202012Validator(schema).is_valid
    assert fits(success.structured_content)
    assert failure.structured_content is None  # the TypeScript SDK 1 holds it against the schema
    for wrong in ({}, {"words": "many"}, {"words": ["a"]}, {"words": [{"text": "a"}]}):
        assert not fits(wrong)


async def test_progress_reaches_the_client_and_only_grows(server_of: ServerOf, mode: str) -> None:
    @tool(scope=ToolScope.SANDBOXED, effects=READ)
    async def walk(context: RequestContext) -> str:
        """Walks."""
        for done in (1, 2, 2, 1, float("nan"), 3):
            await context.report_progress(done, 3, "one \udce9 step")
        return "there"

    heard: list[tuple[float, float | None, str | None]] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with Client(server_of(walk), mode=mode) as client:
        await client.call_tool("walk", {}, progress_callback=listen)
        await client.call_tool("walk", {})
    assert heard == [(done, 3, "one ? step") for done in (1, 2, 3)]


async def test_a_cancelled_call_is_stopped_and_frees_what_it_held(
    server_of: ServerOf, mode: str
) -> None:
    started, stopped = anyio.Event(), anyio.Event()

    @tool(scope=ToolScope.SANDBOXED, effects={Effect.WRITE})
    async def write(forever: bool) -> str:
        """Writes."""
        if not forever:
            return "written"
        started.set()
        try:
            await anyio.sleep(60)
        finally:
            stopped.set()
        return "never"

    with anyio.fail_after(5):
        async with Client(server_of(write), mode=mode) as client:
            async with anyio.create_task_group() as group:
                group.start_soon(client.call_tool, "write", {"forever": True})
                await started.wait()
                group.cancel_scope.cancel()
            await stopped.wait()
            assert not (await client.call_tool("write", {"forever": False})).is_error


async def test_a_deadline_is_a_result(server_of: ServerOf, mode: str) -> None:
    @tool(scope=ToolScope.SANDBOXED, effects=READ, timeout=0.05)
    async def hang() -> None:
        """Hangs."""
        await anyio.sleep(60)

    with anyio.fail_after(5):
        async with Client(server_of(hang), mode=mode) as client:
            result = await client.call_tool("hang", {})
    assert told(result).startswith("timeout: ")
    assert "0.05 seconds" in told(result)


async def test_text_that_utf8_cannot_carry_does_not_reach_the_wire(
    server_of: ServerOf, mode: str
) -> None:
    async with Client(server_of(*ALL), mode=mode) as client:
        result = await client.call_tool("odd_name", {})
    assert "caf?.txt" in told(result)
    assert "caf?.txt" in result.structured_content.values()


@pytest.mark.parametrize(("levels", "failed"), [(MAX_LEVELS - 1, False), (MAX_LEVELS, True)])
async def test_an_answer_too_deep_for_clients_to_parse_is_a_failure(
    server_of: ServerOf, mode: str, levels: int, failed: bool
) -> None:
    async with Client(server_of(dig), mode=mode) as client:
        result = await client.call_tool("dig", {"levels": levels})
    assert result.is_error is failed
    from_json(to_json(result.structured_content))


async def test_a_call_is_the_servers_own_users(server_of: ServerOf, mode: str) -> None:
    async with Client(server_of(whose), mode=mode) as client:
        assert "ann" in told(await client.call_tool("whose", {}))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_server_introduces_itself(server_of: ServerOf, mode: str) -> None:
    async with Client(server_of(*ALL), mode=mode) as client:
        assert client.server_info is not None
        assert (client.server_info.name, client.server_info.version) == ("toolcrib", "1.2.3")
        assert client.instructions == "Ask the crib."
        assert client.server_capabilities.tools is not None
        assert client.server_capabilities.resources is not None

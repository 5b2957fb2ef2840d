"""Calls through the gateway, over all pairs of eras: what goes there and what comes back."""

from base64 import b64decode, b64encode
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from io import BytesIO
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client
from PIL import Image

from server.app import App
from tests.conftest import told

pytestmark = pytest.mark.slow

AppOf = Callable[..., AbstractAsyncContextManager[App]]
ClientOf = Callable[..., Client]
Toy = Callable[..., AbstractAsyncContextManager[Client]]

UPSTREAM = pytest.mark.parametrize("upstream", ["handshake", "modern"])
ACROSS_ERAS = pytest.mark.parametrize(
    ("era", "upstream"), [("legacy", "modern"), ("modern", "handshake")]
)

ERA = pytest.mark.parametrize("era", ["legacy", "modern"])


async def called(client: Client, name: str, **arguments: Any) -> types.CallToolResult:
    """Without the client's own look at the output schema."""
    params = types.CallToolRequestParams(name=name, arguments=arguments)
    return await client.session.send_request(
        types.CallToolRequest(params=params), types.CallToolResult
    )


def failure(result: types.CallToolResult) -> tuple[str, str]:
    assert result.is_error
    error_type, _, message = told(result).partition(": ")
    return error_type, message


@UPSTREAM
@ERA
async def test_every_kind_of_content_comes_back_as_it_was(
    toy: Toy, upstream: str, era: str
) -> None:
    async with toy(upstream, era) as client:
        result = await called(client, "toy__everything")
    told = result.model_dump(by_alias=True, exclude_none=True, mode="json")
    kinds = ["text", "image", "audio", "resource_link", "resource"]
    assert [block["type"] for block in told["content"]] == kinds
    assert told["content"][0]["annotations"] == {"audience": ["user"], "priority": 0.5}
    assert told["content"][1]["_meta"] == {"a.b/c": 1}
    assert told["content"][3]["icons"][0]["mimeType"] == "image/png"
    assert told["structuredContent"] == {"null": None, "deep": [{"x": 1.5}]}
    assert told["_meta"]["example.com/k"] == {"v": [1, None]}
    assert "toy" not in str(told["_meta"])  # who answers is this server, to its client


@ACROSS_ERAS
async def test_a_large_image_is_scaled_and_the_rest_of_the_result_stays(
    toy: Toy, upstream: str, era: str
) -> None:
    file = BytesIO()
    Image.new("RGB", (4_000, 1_000)).save(file, "PNG")
    async with toy(upstream, era) as client:
        data = b64encode(file.getvalue()).decode()
        result = await called(client, "toy__picturing", data=data)
        torn = await called(client, "toy__picturing", data=data[:2_000])
    before, image, link, note = result.content
    assert (before.type, link.type) == ("text", "resource_link")
    assert isinstance(image, types.ImageContent)
    with Image.open(BytesIO(b64decode(image.data))) as opened:
        assert opened.size == (1_568, 392)
    assert isinstance(note, types.TextContent)
    assert "read_result(handle=" in note.text
    assert result.structured_content is None
    assert [each.type for each in torn.content] == ["text", "resource_link", "text"]
    assert isinstance(torn.content[-1], types.TextContent)
    assert "is left out" in torn.content[-1].text


@ACROSS_ERAS
async def test_a_definition_is_listed_as_its_server_gives_it(
    app_of: AppOf, client_of: ClientOf, upstream: str, era: str
) -> None:
    async with app_of(upstream) as app, client_of(app, era) as client:
        assert (await called(client, "toy__echo")).is_error is False  # it has been listed
        spec = app.registry.find("toy__everything")
    listed = spec.listed
    assert isinstance(listed, types.Tool)
    told = listed.model_dump(by_alias=True, exclude_none=True, mode="json")
    assert told["icons"] == [{"src": "https://example.com/i.png", "sizes": ["48x48"]}]
    assert told["annotations"] == {"title": "All", "readOnlyHint": True}
    assert told["outputSchema"]["required"] == ["never"]
    assert told["_meta"] == {"example.com/tool": True}


@ACROSS_ERAS
async def test_what_a_caller_says_of_its_request_goes_along_and_our_own_keys_do_not(
    toy: Toy, upstream: str, era: str
) -> None:
    async with toy(upstream, era) as client:
        meta: Any = {"example.com/trace": "t", "progressToken": "mine"}
        result = await client.session.call_tool("toy__echo", {"a": [1, None]}, meta=meta)
    assert result.structured_content["got"] == {"a": [1, None]}
    assert result.structured_content["meta"]["example.com/trace"] == "t"
    assert "mine" not in str(result.structured_content["meta"])


@ACROSS_ERAS
async def test_progress_comes_back_and_only_grows(toy: Toy, upstream: str, era: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with toy(upstream, era) as client:
        await client.call_tool("toy__stepping", {}, progress_callback=hear)
    assert heard == [(step, 3, f"step {step}") for step in (1, 2, 3)]


@ACROSS_ERAS
async def test_a_call_that_the_client_gives_up_is_given_up_there(
    toy: Toy, journal: Any, upstream: str, era: str
) -> None:
    async with toy(upstream, era) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(called, client, "toy__waiting")
            await journal.tells("waiting")
            group.cancel_scope.cancel()
        await journal.tells("cancelled")
        assert (await called(client, "toy__echo")).is_error is False


@UPSTREAM
async def test_a_call_that_takes_too_long_is_given_up_there(
    app_of: AppOf, client_of: ClientOf, journal: Any, upstream: str
) -> None:
    async with app_of(upstream, timeout=0.2) as app, client_of(app) as client:
        kind, message = failure(await called(client, "toy__waiting"))
        assert (kind, "0.2 seconds" in message) == ("timeout", True)
        await journal.tells("cancelled")


@ACROSS_ERAS
async def test_a_failure_of_the_tool_comes_back_as_it_was(
    toy: Toy, upstream: str, era: str
) -> None:
    async with toy(upstream, era) as client:
        result = await called(client, "toy__failing")
    assert result.is_error
    assert [block.text for block in result.content] == ["it broke"]  # type: ignore[union-attr]  # texts
    assert result.structured_content is None


@UPSTREAM
async def test_errors_of_the_protocol_say_who_refused_and_why(toy: Toy, upstream: str) -> None:
    async with toy(upstream) as client:
        kind, message = failure(await called(client, "toy__refusing", code=-32002))
        assert kind == "upstream_failed"
        assert all(part in message for part in ("'toy'", "No, not this", "because", "-32002"))
        kind, message = failure(await called(client, "toy__refusing", code=types.INVALID_PARAMS))
        assert kind == "invalid_arguments"
        assert "No, not this" in message


@UPSTREAM
async def test_a_server_that_dies_in_a_call_fails_it_and_serves_the_next(
    toy: Toy, upstream: str
) -> None:
    async with toy(upstream) as client:
        kind, message = failure(await called(client, "toy__dying"))
        assert (kind, "'toy'" in message) == ("upstream_failed", True)
        assert (await called(client, "toy__echo")).is_error is False


async def test_structured_content_of_the_newer_era_is_told_to_older_clients_as_text(
    app_of: AppOf, client_of: ClientOf
) -> None:
    async with app_of("modern") as app:
        async with client_of(app) as client:
            older = await called(client, "toy__listed")
        async with client_of(app, "modern") as client:
            newer = await called(client, "toy__listed")
    assert older.structured_content is None
    assert [block.text for block in older.content] == ["[1, 2]"]  # type: ignore[union-attr]  # texts
    assert newer.structured_content == [1, 2]


async def test_a_call_asks_for_no_list(toy: Toy, journal: Any) -> None:
    async with toy() as client:
        await called(client, "toy__echo")
        before = journal.lines.count("listed")
        for _ in range(3):
            await called(client, "toy__echo")
    assert journal.lines.count("listed") == before

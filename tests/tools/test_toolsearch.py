"""search_tools, describe_tool and call_tool, asked by a real client."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult, ImageContent

from server.app import App
from tools.core.context import RequestContext
from tools.core.function_to_mcp import FunctionToMCP
from tools.core.media import Media
from tools.core.spec import Effect, ToolScope, tool

pytestmark = pytest.mark.anyio


class Crib(Protocol):
    """What these tests use of the product in memory."""

    app: App
    client: Client

    async def call(self, name: str, /, **arguments: Any) -> dict[str, Any]: ...
    async def text(self, name: str, /, **arguments: Any) -> str: ...
    async def failure(self, name: str, /, **arguments: Any) -> tuple[str, str]: ...


Open = Callable[..., AbstractAsyncContextManager[Crib]]


@pytest.fixture
async def crib(open_crib: Open) -> AsyncIterator[Crib]:
    async with open_crib() as crib:
        yield crib


def names(found: dict[str, Any]) -> list[str]:
    return [card["name"] for card in found["tools"]]


async def test_every_tool_is_found_by_its_name_described_and_called(crib: Crib) -> None:
    listed = {each.name for each in (await crib.client.list_tools()).tools}
    unlisted = [spec for spec in crib.app.registry.specs() if spec.name not in listed]
    assert unlisted
    for spec in unlisted:
        for name in (spec.name, *spec.aliases):
            assert names(await crib.call("search_tools", query=name))[0] == spec.name
            described = await crib.call("describe_tool", name=name)
            assert described["input_schema"] == spec.input_schema
            assert described["output_schema"] == spec.output_schema
            assert described["effects"] == sorted(spec.effects)
        wrong = {"no_such_argument": 1}
        error_type, told = await crib.failure("call_tool", name=spec.name, arguments=wrong)
        assert error_type == "invalid_arguments"
        assert f"Its parameters are {spec.name}(" in told


async def test_every_tool_is_found_by_what_it_can_do(crib: Crib) -> None:
    for spec in crib.app.registry.specs():
        for capability in spec.capabilities:
            assert spec.name in names(await crib.call("search_tools", query=capability))


async def test_a_card_says_how_a_tool_is_called_in_one_line(crib: Crib) -> None:
    text = await crib.text("search_tools", query="delete a stored document", top_k=1)
    assert text.startswith("delete_document(raw_type, raw_id, user_id?, ")
    assert "\n" not in text
    assert text.endswith(".")


async def test_a_need_that_no_tool_meets_finds_nothing_and_says_what_there_is(crib: Crib) -> None:
    assert names(await crib.call("search_tools", query="xylophone zebra")) == []
    text = await crib.text("search_tools", query="xylophone zebra")
    assert text.startswith("No tool fits.")
    assert "context" in text


async def test_no_more_than_asked_for_are_found(crib: Crib) -> None:
    assert len(names(await crib.call("search_tools", query="document", top_k=2))) == 2


async def test_the_description_of_the_search_counts_the_catalogue(crib: Crib) -> None:
    listed = {each.name: each for each in (await crib.client.list_tools()).tools}
    described = listed["search_tools"].description
    assert described is not None
    assert f"all {len(crib.app.registry.specs())}: context " in described
    assert (await crib.call("describe_tool", name="search_tools"))["description"] == described


@pytest.mark.parametrize("through", ["describe_tool", "call_tool"])
async def test_an_unknown_name_is_answered_with_three_that_were_meant(
    crib: Crib, through: str
) -> None:
    result = await crib.client.call_tool(through, {"name": "delete_documents"})
    assert result.structured_content["error_type"] == "unknown_tool"
    assert result.structured_content["suggestions"][0] == "delete_document"
    assert len(result.structured_content["suggestions"]) == 3


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("add_document", {"text": "The kettle is blue.", "title": "Kettle", "raw_id": "k"}),
        ("write_text_file", {"file_path": "a.txt", "content": "a"}),
        ("read_file", {"file_path": "missing.txt"}),
        ("read_file", {"file_path": "../outside.txt"}),
        ("get_document", {"raw_type": "text", "raw_id": "missing"}),
        ("list_directory", {}),
        ("query", {"query": "kettle", "user_id": "eve"}),
    ],
)
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_call_through_call_tool_answers_what_the_tool_answers(
    open_crib: Open, mode: str, name: str, arguments: dict[str, Any]
) -> None:
    async with open_crib(mode) as crib:
        await crib.client.call_tool(name, arguments)  # so that both calls below find the same
        direct = await crib.client.call_tool(name, arguments)
        through = await crib.client.call_tool("call_tool", {"name": name, "arguments": arguments})
    assert _comparable(through) == _comparable(direct)


def _comparable(result: CallToolResult) -> dict[str, Any]:
    return result.model_dump(exclude={"meta"})


async def test_call_tool_does_not_call_itself(crib: Crib) -> None:
    nested = {"name": "call_tool", "arguments": {"name": "query", "arguments": {"query": "x"}}}
    error_type, told = await crib.failure("call_tool", name="call_tool", arguments=nested)
    assert error_type == "invalid_arguments"
    assert "cannot call itself" in told


async def test_progress_images_and_the_deadline_are_the_called_tools(crib: Crib) -> None:
    @tool(scope=ToolScope.SANDBOXED, effects={Effect.READ}, timeout=0.05)
    async def paint(context: RequestContext, forever: bool) -> Media:
        """Paints.

        Args:
            forever: Whether it never ends.
        """
        await context.report_progress(1, 2, "half")
        await anyio.sleep(60 if forever else 0)
        return Media("image", b"paint", "image/png")

    crib.app.registry.add(FunctionToMCP.convert(paint))
    heard: list[float] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    with anyio.fail_after(10):
        arguments: dict[str, Any] = {"name": "paint", "arguments": {"forever": False}}
        result = await crib.client.call_tool("call_tool", arguments, progress_callback=listen)
        slow = await crib.failure("call_tool", name="paint", arguments={"forever": True})
    (image,) = [each for each in result.content if isinstance(each, ImageContent)]
    assert base64.b64decode(image.data) == b"paint"
    assert heard == [1]
    assert slow[0] == "timeout"
    assert "paint did not finish" in slow[1]


async def test_many_writes_through_call_tool_all_end(crib: Crib) -> None:
    async def write(number: int) -> None:
        arguments = {"file_path": f"{number}.txt", "content": str(number)}
        await crib.call("call_tool", name="write_file", arguments=arguments)
        note = {"text": f"Note {number}", "title": str(number), "raw_id": str(number)}
        await crib.call("call_tool", name="add_document", arguments=note)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            for number in range(40):
                group.start_soon(write, number)
    found = await crib.call("list_directory")
    assert len(found["entries"]) == 40

"""search_tools, describe_tool, call_tool and call_tools, asked by a real client."""

import base64
import re
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from mcp_types import CallToolResult, ImageContent, TextContent

from storage.catalog.catalog import Record
from storage.index.embedders.bundled import MiniLMEmbedder
from tests.conftest import told
from tests.tools.conftest import Crib, Open
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.content import Media
from tools.core.context import RequestContext
from tools.core.result import ToolFailure, ToolResult
from tools.core.spec import Effect, ToolScope, tool
from tools.retrieval import index_updates


def names(found: dict[str, Any]) -> list[str]:
    return [card["name"] for card in found["tools"]]


async def test_every_tool_is_found_by_its_name_described_and_called(crib: Crib) -> None:
    for spec in crib.app.registry.specs():
        for name in (spec.name, *spec.aliases):
            assert names(await crib.call("search_tools", query=name))[0] == spec.name
            described = await crib.call("describe_tool", name=name)
            assert described["input_schema"] == spec.input_schema
            assert described.get("output_schema") == spec.output_schema
            assert described["effects"] == sorted(spec.effects)
        if spec.is_proxy:
            continue
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
    assert text.startswith("delete_document(raw_type: str, raw_id: str, user_id?, ")
    assert "\n" not in text
    assert re.search(r"\. [01]\.\d\d$", text)


async def test_a_search_says_how_much_is_indexed_until_all_is(
    crib: Crib, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, embed = threading.Event(), MiniLMEmbedder.embed_passages

    def embed_later(self: MiniLMEmbedder, texts: Sequence[str]) -> Any:
        go_on.wait(30)
        return embed(self, texts)

    monkeypatch.setattr(MiniLMEmbedder, "embed_passages", embed_later)
    monkeypatch.setattr(index_updates, "WHOLE_SECONDS", 0.01)
    text = await crib.text("search_tools", query="delete a stored document", top_k=1)
    assert text.startswith("delete_document(")
    assert "\nStill indexing: 0 % of the tools can be found by meaning" in text
    go_on.set()
    with anyio.fail_after(60):
        while "incomplete" in await crib.call("search_tools", query="delete a document"):
            await anyio.lowlevel.checkpoint()


async def test_a_need_that_no_tool_meets_finds_nothing_and_says_what_there_is(crib: Crib) -> None:
    assert names(await crib.call("search_tools", query="xylophone zebra")) == []
    text = await crib.text("search_tools", query="xylophone zebra")
    assert text.startswith("No tool fits.")
    assert "context" in text


async def test_a_score_that_nothing_reaches_is_named_as_what_may_be_lowered(crib: Crib) -> None:
    text = await crib.text("search_tools", query="store a document", min_score=0.99)
    assert text.startswith("No tool fits. Try other words, fewer tags or a lower min_score. ")


async def test_a_whole_task_may_be_asked_with(crib: Crib) -> None:
    task = "Delete the stored document about cranes, and then the next of them. " * 250
    assert "delete_document" in names(await crib.call("search_tools", query=task))


async def test_no_more_than_asked_for_are_found(crib: Crib) -> None:
    assert len(names(await crib.call("search_tools", query="document", top_k=2))) == 2


async def test_the_description_of_the_search_counts_the_catalogue(crib: Crib) -> None:
    listed = {each.name: each for each in (await crib.client.list_tools()).tools}
    described = listed["search_tools"].description
    assert described is not None
    assert f"all {len(crib.app.registry.specs())}: context " in described
    assert (await crib.call("describe_tool", name="search_tools"))["description"] == described


async def test_several_tools_are_described_as_a_program_calls_them(crib: Crib) -> None:
    found = await crib.call("describe_tool", name="grep, Read", **{"as": "python"})
    first, second = found["python"].splitlines()
    assert first.startswith("async def grep(*, pattern: str, path: str = ")
    assert second.startswith("async def read_file(*, file_path: str, ")
    assert (
        await crib.text("describe_tool", name="grep, Read", **{"as": "python"}) == found["python"]
    )
    error_type, _ = await crib.failure("describe_tool", name="grep, gerp", **{"as": "python"})
    assert error_type == "unknown_tool"


@pytest.mark.parametrize("through", ["describe_tool", "call_tool"])
async def test_an_unknown_name_is_answered_with_three_that_were_meant(
    crib: Crib, through: str
) -> None:
    result = await crib.client.call_tool(through, {"name": "delete_documents"})
    first, meant, *_ = told(result).splitlines()
    assert first.startswith("unknown_tool: ")
    assert meant.startswith("Did you mean: delete_document, ")
    assert meant.count(", ") == 2


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
async def test_a_call_through_call_tool_answers_what_the_tool_answers(
    open_crib: Open, mode: str, name: str, arguments: dict[str, Any]
) -> None:
    async with open_crib(mode) as crib:
        await crib.client.call_tool(name, arguments)  # so that both calls below find the same
        await crib.embed()
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
        """Paints."""
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


async def test_call_tools_answers_each_call_in_its_place(open_crib: Open, mode: str) -> None:
    calls: list[dict[str, Any]] = [
        {"name": "write_file", "arguments": {"file_path": "a.txt", "content": "one"}},
        {"name": "read_file", "arguments": {"file_path": "a.txt"}},
        {"name": "read_file", "arguments": {"file_path": "missing.txt"}},
        {"name": "no_such_tool"},
        {"name": "read_file", "arguments": {"file_pth": "a.txt"}},
    ]
    async with open_crib(mode) as crib:
        answers = (await crib.call("call_tools", calls=calls))["answers"]
        text = await crib.text("call_tools", calls=calls)
    assert [each["name"] for each in answers] == [each["name"] for each in calls]
    assert [each["is_error"] for each in answers] == [False, False, True, True, True]
    assert answers[1]["result"]["content"] == "one"
    kinds = [each["result"]["error_type"] for each in answers[2:]]
    assert kinds == ["not_found", "unknown_tool", "invalid_arguments"]
    assert "did you mean `file_path`?" in answers[4]["result"]["message"]
    assert "Its parameters are read_file(" in answers[4]["result"]["next_actions"][-1]
    assert "4. no_such_tool failed:\nunknown_tool: " in text


async def test_a_call_of_call_tools_that_asks_the_person_runs_the_others_once(
    open_crib: Open, mode: str
) -> None:
    add = {"name": "bash", "arguments": {"command": "echo line >> log.txt"}}
    write = {"name": "write_file", "arguments": {"file_path": "log.txt", "content": "first\n"}}
    read = {"name": "read_file", "arguments": {"file_path": "log.txt"}}
    async with open_crib(mode) as crib:
        answers = (await crib.call("call_tools", calls=[write, add, read]))["answers"]
    assert [each["is_error"] for each in answers] == [False, False, False]
    assert answers[2]["result"]["content"] == "first\nline\n"


@pytest.mark.parametrize("through", ["call_tool", "call_tools"])
async def test_call_tools_calls_nothing_that_calls(crib: Crib, through: str) -> None:
    calls = [{"name": "list_directory"}, {"name": through, "arguments": {}}]
    error_type, told = await crib.failure("call_tools", calls=calls)
    assert error_type == "invalid_arguments"
    assert "call_tools cannot call" in told


async def test_the_texts_of_several_calls_share_one_budget(open_crib: Open) -> None:
    read = [{"name": "read_file", "arguments": {"file_path": name}} for name in ("a", "b", "c")]
    async with open_crib(limits__result_tokens=500) as crib:
        for name, size in (("a", 5_000), ("b", 10), ("c", 5_000)):
            (crib.root / name).write_text(f"{name}{'x' * size}end")
        text = await crib.text("call_tools", calls=read)
        answers = (await crib.call("call_tools", calls=read))["answers"]
    assert len(text) <= 2_000
    assert "bxxxxxxxxxxend" in text
    assert text.count("read_result(handle=") == 2
    assert [list(each["result"]) for each in answers][::2] == [["toolcrib_note"]] * 2


async def test_images_of_several_calls_stand_beside_the_answers(crib: Crib) -> None:
    @tool(scope=ToolScope.SANDBOXED, effects={Effect.READ})
    def paint(colour: str) -> Media:
        """Paints."""
        return Media("image", colour.encode(), "image/png")

    crib.app.registry.add(FunctionToMCP.convert(paint))
    calls = [{"name": "paint", "arguments": {"colour": each}} for each in ("red", "blue")]
    result = await crib.client.call_tool("call_tools", {"calls": calls})
    images = [each for each in result.content if isinstance(each, ImageContent)]
    assert [base64.b64decode(each.data) for each in images] == [b"red", b"blue"]


async def test_five_cards_are_short_and_the_rest_of_a_search_narrows(crib: Crib) -> None:
    for query in ("store a document", "files", "who is this person", "search the web", "memory"):
        found = await crib.call("search_tools", query=query)
        assert 3 <= len(found["tools"]) <= 5
        assert len(await crib.text("search_tools", query=query)) <= 680
    narrowed = await crib.call("search_tools", query="read a file", tags=["files"], top_k=50)
    assert narrowed["tools"]
    for name in names(narrowed):
        assert "files" in crib.app.registry.find(name).tags
    both = await crib.call(
        "search_tools", query="delete", tags=["context", "documents"], match="all", top_k=50
    )
    assert set(names(both)) <= {
        spec.name for spec in crib.app.registry.specs() if {"context", "documents"} <= {*spec.tags}
    }
    assert names(await crib.call("search_tools", query="delete", min_score=1.0)) == []


async def test_what_only_a_file_describes_is_found_and_not_called(crib: Crib) -> None:
    records = crib.app.library.catalog.records
    fields = {
        "tool_id": "launch_rocket",
        "name": "Rocket launcher",
        "description": "Launches a rocket into orbit.",
        "parameters": {"properties": {"payload": {"type": "string"}}, "required": ["payload"]},
    }
    file = crib.root / "rocket.json"
    records.replace(crib.root, [Record("launch_rocket", file, fields)])
    text = await crib.text("search_tools", query="launch a rocket")
    assert text.startswith("Rocket launcher(payload: str): Launches a rocket into orbit. (found on")
    described = await crib.call("describe_tool", name="launch_rocket")
    assert described["input_schema"] == fields["parameters"]
    for name in ("launch_rocket", "Rocket launcher"):
        for through, arguments in (
            ("call_tool", {"name": name}),
            ("launch_rocket", {"payload": "x"}),
        ):
            error_type, told = await crib.failure(through, **arguments)
            assert error_type == "not_found"
            assert "can be found but not called" in told
    records.replace(crib.root, [])
    assert "Rocket launcher" not in await crib.text("search_tools", query="launch a rocket")


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"titel": "a"}, "`title` is missing.\n`titel` is unknown; did you mean `title`?"),
        ({"title": 7}, "`title` must be of type string, not 7."),
        ({"title": "a"}, ""),
    ],
)
async def test_a_refusal_of_another_server_is_held_against_its_schema(
    crib: Crib, arguments: dict[str, Any], advice: str
) -> None:
    refused = CallToolResult(content=[TextContent(text="no", _meta={"a": 1})], is_error=True)

    async def refuse(_arguments: dict[str, Any], _context: RequestContext) -> ToolResult:
        failure = ToolFailure(error_type="upstream_failed", message="no")
        return ToolResult(failure.model_dump(mode="json"), "no", is_error=True, verbatim=refused)

    @tool(effects={Effect.READ})
    def file_issue(title: str) -> None:
        """Files an issue."""

    spec = replace(
        FunctionToMCP.convert(file_issue),
        name="hub__file_issue",
        bare="file_issue",
        scope=ToolScope.MCP,
        source="upstream:hub",
        validate=dict,
        invoke=refuse,
    )
    crib.app.registry.add(spec)
    direct = await crib.client.call_tool("file_issue", arguments)
    assert direct.content == refused.content
    called = {"name": "file_issue", "arguments": arguments}
    through = await crib.client.call_tool("call_tool", called)
    assert through.content[0] == refused.content[0]
    told = [each.text for each in through.content[1:] if isinstance(each, TextContent)]
    parameters = "Its parameters are hub__file_issue(title: string)."
    assert told == ([f"{advice}\n{parameters}"] if advice else [])
    several = await crib.text("call_tools", calls=[called])
    assert (parameters in several) is bool(advice)


async def test_calls_that_are_passed_on_may_become_tasks(open_crib: Open, tmp_path: Path) -> None:
    source = (
        "async def doze() -> str:\n    import anyio\n    await anyio.sleep(5)\n    return 'up'\n"
    )
    (tmp_path / "naps.py").write_text(
        f"from tools.authoring import tool\n\n@tool(may_become_job=True)\n{source}",
        encoding="utf-8",
    )
    async with open_crib(functions__paths=[tmp_path / "naps.py"], patience=0.2) as crib:
        listed = {each.name: each for each in (await crib.client.list_tools()).tools}
        assert listed["call_tools"].output_schema is None
        told = await crib.text("call_tools", calls=[{"name": "doze", "arguments": {}}])
        assert "goes on as task" in told

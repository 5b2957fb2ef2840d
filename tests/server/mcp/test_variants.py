"""What clients are given by their names and the settings, asked by real clients of both eras."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client

from server.app import App
from server.settings.gateway import ProfileSettings
from server.settings.settings import FunctionSettings, LimitSettings
from tests.conftest import told
from tests.server.serving import running
from tools.conversion.function_to_mcp import FunctionToMCP

pytestmark = pytest.mark.slow

COUNT = '''def count(text: str) -> int:
    """Counts letters."""
    return len(text)
'''
ANY_OBJECT = {"type": "object"}


@asynccontextmanager
async def opened(
    directory: Path, profiles: Mapping[str, Mapping[str, Any]] | None = None, **options: Any
) -> AsyncIterator[App]:
    (directory / "counts.py").write_text(COUNT)
    options["functions"] = FunctionSettings(paths=(directory / "counts.py",))
    named = {name: ProfileSettings(**each) for name, each in (profiles or {}).items()}
    async with running(directory, profiles=named, **options) as app:
        yield app


def client_of(app: App, mode: str, name: str) -> Client:
    return Client(app.server, mode=mode, client_info=types.Implementation(name=name, version="1"))


async def seen(client: Client, name: str, /, **arguments: Any) -> tuple[Any, types.CallToolResult]:
    """The output schema that is listed, and what a call answers."""
    listed = {each.name: each for each in (await client.list_tools()).tools}
    return listed[name].output_schema, await client.call_tool(name, arguments)


@pytest.mark.parametrize(
    "name", ["claude-code", "codex-mcp-client", "opencode", "Visual Studio Code - Insiders"]
)
@pytest.mark.parametrize("surface", ["lean", "full"])
async def test_a_client_that_would_read_the_json_is_given_text_alone(
    tmp_path: Path, mode: str, name: str, surface: str
) -> None:
    async with opened(tmp_path, surface=(surface,)) as app, client_of(app, mode, name) as client:
        assert {each.output_schema for each in (await client.list_tools()).tools} == {None}
        for called, arguments in (("count", {"text": "oak"}), ("list_directory", {})):
            result = await client.call_tool(called, arguments)
            assert not result.is_error
            assert result.structured_content is None
            assert told(result)


async def test_others_are_given_structured_content_where_its_schema_is_listed(
    tmp_path: Path, mode: str
) -> None:
    async with opened(tmp_path) as app, client_of(app, mode, "a program") as client:
        schema, result = await seen(client, "list_directory")
        assert (schema, result.structured_content) == (None, None)
        schema, result = await seen(client, "count", text="oak")
        assert schema["properties"] == {"result": {"type": "integer"}}
        assert (result.structured_content, told(result)) == ({"result": 3}, "3")
        called = {"name": "count", "arguments": {"text": "oak"}}
        through = await client.call_tool("call_tool", called)
        assert (through.structured_content, told(through)) == (None, "3")


@pytest.mark.parametrize("results", ["text", "structured", "both"])
async def test_the_setting_decides_for_every_client_and_a_profile_for_its_own(
    tmp_path: Path, mode: str, results: str
) -> None:
    profiles = {"desk": {"clients": "desk", "results": results}}
    for where, options in (("a", {"results": results}), ("b", {"profiles": profiles})):
        (tmp_path / where).mkdir()
        name = "claude-code" if where == "a" else "Desk"
        async with opened(tmp_path / where, **options) as app, client_of(app, mode, name) as client:
            schema, result = await seen(client, "list_directory")
            assert schema == (None if results == "text" else ANY_OBJECT)
            assert (result.structured_content is None) is (results == "text")
            _, result = await seen(client, "count", text="oak")
            assert told(result) == ('{"result":3}' if results == "structured" else "3")
            assert result.structured_content == (None if results == "text" else {"result": 3})
            _, failure = await seen(client, "count", text=[])
            assert (failure.structured_content, failure.is_error) == (None, True)


async def test_claude_code_is_asked_not_to_hide_what_reaches_all_else(
    tmp_path: Path, mode: str
) -> None:
    async with opened(tmp_path) as app, client_of(app, mode, "claude-code") as client:
        metas = {each.name: each.meta for each in (await client.list_tools()).tools}
        always = {name for name, meta in metas.items() if meta == {"anthropic/alwaysLoad": True}}
        assert always == {"call_tool", "query", "remember", "run_code", "search_tools"}
        assert metas["bash"] == {
            "anthropic/searchHint": "run a shell command; run a program, a build or tests; use git"
        }


async def test_claude_code_is_told_of_results_that_are_larger_than_it_takes(
    tmp_path: Path, mode: str
) -> None:
    sizes = {"bash": 25_000, "grep": 25_001, "read_file": 1_000_000, "query": 0}
    limits = LimitSettings(tool_result_tokens=sizes)
    async with (
        opened(tmp_path, limits=limits) as app,
        client_of(app, mode, "claude-code") as client,
    ):
        metas = {each.name: each.meta or {} for each in (await client.list_tools()).tools}
    told = {name: meta.get("anthropic/maxResultSizeChars") for name, meta in metas.items()}
    assert {name: size for name, size in told.items() if size} == {
        "grep": 100_004,
        "read_file": 500_000,
        "query": 500_000,
    }


async def test_other_clients_are_listed_no_hints_of_one_vendor(tmp_path: Path) -> None:
    async with opened(tmp_path) as app, client_of(app, "legacy", "a program") as client:
        assert {str(each.meta) for each in (await client.list_tools()).tools} == {"None"}


def shelve(books: list[int | None], shelf: int | None = None) -> list[int | None]:
    """Shelves books."""
    return [*books, shelf]


NULLS = {
    "type": "object",
    "properties": {
        "books": {"type": "array", "items": {"type": ["integer", "null"]}},
        "shelf": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
    },
    "required": ["books"],
}


@pytest.mark.parametrize(
    ("name", "nulls"),
    [
        ("cursor-vscode", False),
        ("Cursor", False),
        ("gemini-cli-mcp-client", False),
        ("claude-code", True),
        ("", True),
    ],
)
async def test_clients_that_refuse_null_unions_are_listed_none_and_their_calls_taken(
    tmp_path: Path, mode: str, name: str, nulls: bool
) -> None:
    theirs = types.Tool(name="hub__shelve", input_schema=NULLS, output_schema=ANY_OBJECT)
    spec = replace(
        FunctionToMCP.convert(shelve),
        name="hub__shelve",
        input_schema=NULLS,
        source="upstream:hub",
        listed=theirs,
    )
    async with opened(tmp_path, surface=("full",)) as app, client_of(app, mode, name) as client:
        app.registry.replace_source("upstream:hub", [spec])
        listed = {each.name: each for each in (await client.list_tools()).tools}
        for each in listed.values():
            assert nulls or '"null"' not in json.dumps(each.input_schema)
        assert (listed["hub__shelve"].input_schema == NULLS) is nulls
        reads_structured = name == "claude-code"  # gets text alone, which may be a preview
        assert listed["hub__shelve"].output_schema == (None if reads_structured else ANY_OBJECT)
        for books in ([1], [1, None]):
            result = await client.call_tool("hub__shelve", {"books": books, "shelf": None})
            assert not result.is_error, result.content


async def test_a_list_is_the_same_on_each_connection_of_a_name_and_after_other_names(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, surface=("full",)) as app:
        lists: dict[str, list[Any]] = {}
        for name in ("claude-code", "Cursor", "a program") * 2:
            for mode in ("legacy", "2026-07-28"):
                async with client_of(app, mode, name) as client:
                    lists.setdefault(name, []).append((await client.list_tools()).tools)
    for taken in lists.values():
        assert all(each == taken[0] for each in taken)
    assert lists["claude-code"][0] != lists["a program"][0]

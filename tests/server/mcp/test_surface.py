from dataclasses import replace
from pathlib import Path

import anyio.lowlevel
import pytest
from mcp import Client

import tools
from server.app import App, build
from server.mcp.sessions import Variant
from server.mcp.surface import EVERYDAY, Surface, ToolLists
from server.settings.gateway import ServerSettings
from server.settings.settings import FunctionSettings, Settings
from server.settings_file import SettingsError
from tests.conftest import told
from tests.server.serving import running
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.discovery import discover
from tools.core.registry import ToolRegistry

SAW = '''def saw(length: float) -> float:
    """Saws."""
    return length / 2
'''


async def listed(app: App, mode: str = "2026-07-28") -> list[str]:
    async with Client(app.server, mode=mode) as client:
        return [each.name for each in (await client.list_tools()).tools]


def everyday(app: App, *more: str) -> list[str]:
    return sorted({spec.name for spec in app.registry.specs()} & EVERYDAY | set(more))


async def test_the_lean_surface_is_the_everyday_tools(tmp_path: Path, mode: str) -> None:
    async with running(tmp_path) as app:
        assert await listed(app, mode) == everyday(app)


async def test_the_full_surface_is_every_tool(tmp_path: Path, mode: str) -> None:
    async with running(tmp_path, surface=("full",)) as app:
        assert await listed(app, mode) == [spec.name for spec in app.registry.specs()]
        async with Client(app.server) as client:
            for each in (await client.list_tools()).tools:
                assert each.input_schema == app.registry.find(each.name).input_schema


@pytest.mark.parametrize(
    ("surface", "expected"),
    [
        (("read_file", "query"), ["query", "read_file"]),
        (("view_text_file", "read_file"), ["read_file"]),
    ],
)
async def test_a_surface_of_names_is_those_tools(
    tmp_path: Path, surface: tuple[str, ...], expected: list[str]
) -> None:
    async with running(tmp_path, surface=surface) as app:
        assert await listed(app) == expected


async def test_a_surface_may_add_names_to_the_lean_one(tmp_path: Path) -> None:
    async with running(tmp_path, surface=("lean", "delete_document")) as app:
        assert await listed(app) == everyday(app, "delete_document")


async def test_what_is_not_listed_is_callable(tmp_path: Path) -> None:
    async with running(tmp_path, surface=("query",)) as app, Client(app.server) as client:
        assert not (await client.call_tool("list_directory", {})).is_error


async def test_no_connection_and_no_call_changes_the_list(tmp_path: Path, mode: str) -> None:
    async with running(tmp_path) as app:
        before = await listed(app, mode)
        async with Client(app.server, mode=mode) as client:
            await client.call_tool("search_tools", {"query": "delete"})
            called = {"name": "delete_document", "arguments": {}}
            await client.call_tool("call_tool", called)
            after = await client.list_tools(cache_mode="bypass")
        assert [each.name for each in after.tools] == before == await listed(app, "auto")


async def test_function_files_are_on_the_lean_surface_and_may_be_named(tmp_path: Path) -> None:
    (tmp_path / "saws.py").write_text(SAW)
    functions = FunctionSettings(paths=(tmp_path / "saws.py",))
    async with running(tmp_path, functions=functions) as app:
        assert await listed(app) == everyday(app, "saw")
        async with Client(app.server) as client:
            found = await client.call_tool("search_tools", {"query": "saw"})
            assert told(found).startswith("saw(")
            called = {"name": "saw", "arguments": {"length": 3}}
            result = await client.call_tool("call_tool", called)
            assert told(result) == "1.5"
            (saw,) = [each for each in (await client.list_tools()).tools if each.name == "saw"]
            assert saw.input_schema == app.registry.find("saw").input_schema


async def test_a_function_that_is_named_but_not_there_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "saws.py").write_text(SAW)
    functions = FunctionSettings(paths=(tmp_path / "saws.py",))
    async with running(tmp_path, surface=("saw", "sow"), functions=functions) as app:
        assert await listed(app) == ["saw"]
    assert "No tool is called 'sow'. Did you mean saw" in caplog.text


def test_a_name_that_no_tool_has_is_refused_at_the_start(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data", root=tmp_path, surface=("lean", "qurey"))
    with pytest.raises(SettingsError, match=r"surface: No tool is called 'qurey'. Did you .*query"):
        build(settings)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("named", ["server:hub", "server:h*", "hub__file_issue", "hub__*"])
def test_a_surface_names_tools_of_other_servers(named: str) -> None:
    def file_issue() -> None:
        """Files."""

    spec = replace(FunctionToMCP.convert(file_issue), name="hub__file_issue", source="upstream:hub")
    registry = ToolRegistry()
    discover(registry, tools)
    registry.add(spec)
    assert spec not in Surface(["lean"]).select(registry)
    assert Surface([named]).select(registry) == [spec]
    shown = Surface(["lean", named]).select(registry)
    assert {each.name for each in shown} == {*EVERYDAY, "hub__file_issue"}


async def test_a_server_without_a_prefix_is_listed_by_its_own_names_where_they_are_free() -> None:
    def grep() -> None:
        """Searches."""

    def file_issue() -> None:
        """Files."""

    registry = ToolRegistry()
    discover(registry, tools)
    for made in map(FunctionToMCP.convert, (grep, file_issue)):
        registry.add(replace(made, name=f"hub__{made.name}", bare=made.name, source="upstream:hub"))
    surface = Surface(["server:hub"], {"hub": ServerSettings(command="hub", prefix=False)})
    listed = await ToolLists(registry, surface, anyio.lowlevel.checkpoint).of(None, Variant())
    assert [each.name for each in listed] == ["file_issue", "hub__grep"]

"""Function files behind the real server: listed and called as they are now, closed to agents."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from server.app import build
from server.clients.locations import command_path
from server.settings.settings import FunctionSettings, Settings
from tests.conftest import told
from tools.core.result import ToolResult

pytestmark = pytest.mark.slow

SOURCE = """
from collections.abc import Iterator

def saw(length: float) -> float:
    print("printed")
    return length / 2

def strokes(n: int) -> Iterator[str]:
    for stroke in range(n):
        yield f"stroke {stroke}"

def secret() -> list[str]:
    import os
    return [name for name in os.environ if name.startswith("TOOLCRIB")]
"""


@pytest.fixture
def crafts(tmp_path: Path) -> Path:
    folder = tmp_path / "root" / "crafts"
    folder.mkdir(parents=True)
    (folder / "saws.py").write_text(SOURCE)
    return folder


@asynccontextmanager
async def started(
    directory: Path, *functions: str, store: Path | str = "", **options: Any
) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=str(command_path()),
        args=["serve", "--functions", *functions],
        cwd=directory / "root",
        env={
            "TOOLCRIB_DATA_DIR": str(directory / "data"),
            "TOOLCRIB_HTTP__TOKEN": "hidden",
            "TOOLCRIB_FUNCTIONS__CONTEXT": str(store),
        },
    )
    async with Client(server, **options) as client:
        yield client


async def test_function_files_are_listed_and_called_over_stdio(
    crafts: Path, tmp_path: Path, mode: str
) -> None:
    (tmp_path / "root" / "planes.py").write_text("def plane(x: int) -> int: return x")
    async with started(tmp_path, "crafts", "planes.py", mode=mode) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools.keys() >= {"saw", "strokes", "plane", "query"}
        assert tools["saw"].annotations is not None
        assert tools["saw"].annotations.read_only_hint is False
        assert tools["saw"].annotations.destructive_hint is True
        result = await client.call_tool("saw", {"length": "3"})
        assert (told(result), result.structured_content) == ("1.5", {"result": 1.5})
        assert told(await client.call_tool("secret", {})) == "[]"
        heard: list[str | None] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard.append(message)

        result = await client.call_tool("strokes", {"n": 2}, progress_callback=hear)
        assert result.structured_content == {"result": ["stroke 0", "stroke 1"]}
        assert heard == ["stroke 0", "stroke 1"]


async def test_lists_and_calls_follow_the_file(crafts: Path, tmp_path: Path) -> None:
    async with started(tmp_path, "crafts", cache=None) as client:
        before = {tool.name for tool in (await client.list_tools()).tools}
        (crafts / "saws.py").write_text("def chop(x: int) -> int: return x")
        assert told(await client.call_tool("chop", {"x": 1})) == "1"
        gone = await client.call_tool("saw", {"length": 1})
        assert gone.is_error
        assert told(gone).startswith("unknown_tool: ")
        after = {tool.name for tool in (await client.list_tools()).tools}
        assert after == before - {"saw", "strokes", "secret"} | {"chop"}


async def test_agents_cannot_write_what_the_server_runs(crafts: Path, tmp_path: Path) -> None:
    single = tmp_path / "root" / "single.py"
    single.write_text(SOURCE)
    settings = Settings(
        data_dir=tmp_path / "data",
        root=tmp_path / "root",
        functions=FunctionSettings(paths=(crafts, single)),
    )
    app = build(settings)

    async def write(path: str) -> ToolResult:
        arguments = {"file_path": path, "content": "def evil() -> None: ..."}
        return await app.manager.execute("write_file", arguments, app.context)

    for path in ("crafts/saws.py", "crafts/new.py", "crafts/deep/er.py", "single.py"):
        assert (await write(path)).structured["error_type"] == "permission_denied"
    assert not (await write("other.py")).is_error
    assert single.read_text() == SOURCE
    read = await app.manager.execute("read_file", {"file_path": "single.py"}, app.context)
    assert "strokes" in read.text
    app.library.close()


async def test_a_file_that_the_settings_name_finds_what_the_client_stored(
    crafts: Path, tmp_path: Path
) -> None:
    source = """
from storage.models import SearchFilter
from tools.authoring import RequestContext, tool

@tool(scope="context", effects={"read"})
def titles(query: str, context: RequestContext) -> list[str]:
    return [hit.context.title for hit in context.shelf().search(query, SearchFilter(), 5).hits]
"""
    (crafts / "saws.py").write_text(source)
    async with started(tmp_path, "crafts", store=crafts / "saws.py") as client:
        document = {"text": "The frame saw hangs in the shed.", "title": "saws"}
        added = await client.call_tool("add_document", document)
        assert not added.is_error, told(added)
        found = await client.call_tool("titles", {"query": "saw"})
        assert told(found) == '["saws"]'

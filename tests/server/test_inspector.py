"""The command line of the MCP Inspector (npm @modelcontextprotocol/inspector), as a client."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from server.clients.locations import command_path
from tests.server.serving import serving

INSPECTOR = shutil.which("mcp-inspector")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(INSPECTOR is None, reason="mcp-inspector is not on PATH; .ci/run puts it"),
]

Inspect = Callable[..., Any]


@pytest.fixture
def serve(tmp_path: Path) -> list[str]:
    root = tmp_path / "root"
    root.mkdir()
    (root / "note.txt").write_text("the keys hang behind the door\n")
    data_dir = tmp_path / "data"
    return [str(command_path()), "serve", "--root", str(root), "--data-dir", str(data_dir)]


def run(target: list[str], home: Path, *options: str) -> Any:
    """What the Inspector prints of a method, as JSON."""
    shown = subprocess.run(
        [str(INSPECTOR), "--cli", *target, *options],
        check=True,
        capture_output=True,
        env={**os.environ, "HOME": str(home)},
        timeout=60,
    )
    return json.loads(shown.stdout)


@pytest.fixture(params=["stdio legacy", "stdio modern", "http legacy", "http modern", "sse legacy"])
def inspect(request: pytest.FixtureRequest, serve: list[str], tmp_path: Path) -> Iterator[Inspect]:
    """Runs the Inspector against the server over one transport in one era."""
    transport, era = request.param.split()
    of_era = "--protocol-era", era
    if transport == "stdio":
        yield lambda *options: run(serve, tmp_path, *of_era, *options)
        return
    command = [*serve, "--transport", transport, "--port", "0"]
    with serving(transport, None, command) as url:
        yield lambda *options: run([url], tmp_path, *of_era, *options)


@pytest.mark.parametrize("surface", ["lean", "full"])
@pytest.mark.parametrize("results", ["text", "both"])
def test_the_inspector_finds_nothing_to_say_of_the_schemas(
    serve: list[str], tmp_path: Path, surface: str, results: str
) -> None:
    variables = [f"TOOLCRIB_SURFACE={surface}", f"TOOLCRIB_RESULTS={results}"]
    asked = ("--method", "tools/list", "--strict", "--format", "json")
    listed = run(["env", *variables, *serve], tmp_path, *asked)
    assert listed["result"]["tools"]
    assert "schemaFindings" not in listed, listed["schemaFindings"]


def test_the_inspector_lists_tools_and_calls_one(inspect: Inspect) -> None:
    listed = inspect("--method", "tools/list")
    assert {"query", "read_file"} <= {tool["name"] for tool in listed["tools"]}
    called = inspect(
        "--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "file_path=note.txt"
    )
    assert "behind the door" in called["content"][0]["text"]

"""How many files of the product one warm call runs functions in: these ceilings only go down."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from mcp import Client

from server.app import build
from server.settings import Settings

CEILINGS = {"read_file": 31, "query": 48, "bash": 50, "other__triple": 33}
CALLS: dict[str, dict[str, Any]] = {
    "read_file": {"file_path": "a.txt"},
    "query": {"query": "bad deployment rollback"},
    "bash": {"command": "echo hello"},
    "other__triple": {"x": 2},
}
ROUNDS = 5
"""The first loads what is loaded on first use; others may meet work in the background."""

ROOT = Path(__file__).parents[2]
FLOORS = tuple(f"{ROOT / floor}/" for floor in ("server", "tools", "storage"))
OTHER = """
from mcp.server import MCPServer

server = MCPServer("other")


@server.tool()
def triple(x: int) -> int:
    "Triples."
    return 3 * x


server.run()
"""


@contextmanager
def profiled(files: set[str]) -> Iterator[None]:
    """Collects the files of the product whose functions are called, but for the indexer's."""

    def note(frame: FrameType, event: str, _argument: object) -> None:
        is_ours = event == "call" and frame.f_code.co_filename.startswith(FLOORS)
        if is_ours and "index" not in threading.current_thread().name:
            files.add(frame.f_code.co_filename)

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(before)


@pytest.mark.slow
async def test_a_call_runs_functions_in_few_files(tmp_path: Path) -> None:
    root, script = tmp_path / "root", tmp_path / "other.py"
    root.mkdir()
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    script.write_text(OTHER)
    settings = Settings(
        data_dir=tmp_path / "data",
        root=root,
        policy={"allow": ["bash(echo *)", "other__triple"]},
        servers={"other": {"command": sys.executable, "args": [str(script)], "trusted": True}},
        surface=["full"],
    )
    app = build(settings)
    files: set[str] = set()
    found: dict[str, int] = {}
    with profiled(files):
        async with app.running(), Client(app.server) as client:
            note = {"text": "# Roll back\n\nRun make rollback.", "title": "Deploy"}
            await client.call_tool("add_document", note)
            for _ in range(ROUNDS):
                for tool, arguments in CALLS.items():
                    files.clear()
                    result = await client.call_tool(tool, arguments)
                    found[tool] = min(len(files), found.get(tool, len(files)))
                    assert not result.is_error, result
    above = {tool: count for tool, count in found.items() if count > CEILINGS[tool]}
    assert not above, f"{above} of {CEILINGS}: merge what one reader reads together, drop steps"

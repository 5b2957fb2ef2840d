"""The page about servers of one's own: its programs are run as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "own-server.md").read_text(encoding="utf-8")
FIRST, _SCRIPT, WALK, TEST, LISTS, FASTMCP = re.findall(
    r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL
)
ENVIRON = {**os.environ, "PYTHONPATH": str(ROOT)}


@pytest.mark.parametrize("program", [FIRST, WALK, FASTMCP], ids=["first", "walk", "fastmcp"])
async def test_each_program_serves_the_function(tmp_path: Path, program: str) -> None:
    file = tmp_path / "garden.py"
    file.write_text(program, "utf-8")
    server = StdioServerParameters(command=sys.executable, args=[str(file)], env=ENVIRON)
    async with Client(server, mode="legacy") as client:
        result = await client.call_tool("harvest", {"plant": "kale", "beds": 2})
        assert client.server_info is not None
        assert client.server_info.name == "garden"
    assert result.structured_content == {"kale": 5.0}


def test_its_test_passes(tmp_path: Path) -> None:
    (tmp_path / "garden.py").write_text(WALK, "utf-8")
    (tmp_path / "test.py").write_text(TEST, "utf-8")
    ran = subprocess.run(
        [sys.executable, "test.py"],
        cwd=tmp_path,
        env=ENVIRON,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stderr


def test_the_lists_of_definitions_are_those_that_it_names() -> None:
    subprocess.run([sys.executable, "-c", LISTS], env=ENVIRON, check=True)

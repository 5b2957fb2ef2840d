"""The tutorial, followed to the letter: its files are written, its commands run, in its order."""

import json
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.docs.following import DOCS, Step, blocks, clean_home, follow, steps

pytestmark = pytest.mark.slow

PAGE = (DOCS / "first-tool.md").read_text(encoding="utf-8")
BLOCKS = list(blocks(PAGE))
STEPS = [step for block in BLOCKS for step in steps(block)]
(CONFIGURATION,) = (
    json.loads(block.text) for block in BLOCKS if block.kind == "json" and not block.file
)


WITHOUT_NETWORK = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # 0 as pip reads it: none


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A clean home; packages are installed beside the development installation."""
    home = tmp_path_factory.mktemp("home")
    return {
        **clean_home(home),
        "PIP_TARGET": str(home / "site"),
        "PIP_NO_DEPS": "1",
        **(WITHOUT_NETWORK if find_spec("hatchling") else {}),
        "PYTHONPATH": str(home / "site"),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("library")


@pytest.fixture(scope="module")
def printed(folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """What each command printed, the page followed from its top to its end."""
    return follow(PAGE, folder, environment)


@pytest.mark.parametrize("step", STEPS, ids=[step.command for step in STEPS])
def test_a_command_prints_what_the_page_shows(step: Step, printed: dict[str, str]) -> None:
    assert step.pattern.fullmatch(printed[step.command].strip()), printed[step.command]


async def test_a_client_with_the_configuration_of_the_page_lists_and_calls_the_tool(
    folder: Path, environment: dict[str, str], printed: dict[str, str]
) -> None:
    entry: dict[str, Any] = CONFIGURATION["mcpServers"]["toolcrib"]
    server = StdioServerParameters(
        command=str(Path(sysconfig.get_path("scripts"), Path(entry["command"]).name)),
        args=[each.replace("/home/you/library", str(folder)) for each in entry["args"]],
        env={key: value for key, value in environment.items() if key != "PYTHONPATH"},
    )
    async with Client(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["paper_search"].annotations is not None
        assert tools["paper_search"].annotations.read_only_hint
        result = await client.call_tool("paper_search", {"topic": "sailing"})
    assert result.structured_content is not None
    assert [paper["year"] for paper in result.structured_content["papers"]] == [2018]


def test_the_page_is_linked() -> None:
    assert "](first-tool.md)" in (DOCS / "functions.md").read_text(encoding="utf-8")

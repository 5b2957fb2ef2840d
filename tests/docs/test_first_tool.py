"""The tutorial, followed to the letter: its files are written, its commands run, in its order."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "first-tool.md").read_text(encoding="utf-8")

_BLOCK = re.compile(r"^([^\n]*)\n+```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"`([\w./-]+\.(?:json|md|py|toml))`:$")
_COMMAND = re.compile(r"^\$ ", re.MULTILINE)
_SECONDS = re.compile(r"\d+\\\.\d+s")  # as re.escape leaves it
_SECONDS_OR_MINUTES = r"\d+\.\d+s( \(\d+:\d\d:\d\d\))?"
_BAR = re.compile(r"^.*━.*\n", re.MULTILINE)
_LINK = re.compile(r"\]\((?!http)([^)#]+)(?:#([\w-]+))?\)")


@dataclass(frozen=True)
class Block:
    """A block of the page, and the file that the line before it names."""

    kind: str
    text: str
    file: str


@dataclass(frozen=True)
class Step:
    """A command of the page, and what the page says that it prints."""

    command: str
    shown: str

    @property
    def pattern(self) -> re.Pattern[str]:
        """What is to be printed: "…" is anything, and how long it took is of this machine."""
        anything = re.escape(self.shown.strip()).replace("…", ".*")
        return re.compile(_SECONDS.sub(lambda _: _SECONDS_OR_MINUTES, anything), re.DOTALL)


def blocks() -> Iterator[Block]:
    for before, kind, text in _BLOCK.findall(PAGE):
        named = _FILE.search(before)
        yield Block(kind, text, named[1] if named else "")


def steps(block: Block) -> list[Step]:
    told = _COMMAND.split(block.text)[1:]
    return [Step(*each.split("\n", 1)) for each in told]


BLOCKS = list(blocks())
STEPS = [step for block in BLOCKS if block.kind == "console" for step in steps(block)]
(CONFIGURATION,) = (
    json.loads(block.text) for block in BLOCKS if block.kind == "json" and not block.file
)


WITHOUT_NETWORK = {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # 0 as pip reads it: none


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A clean home; packages are installed beside the development installation."""
    home = tmp_path_factory.mktemp("home")
    scripts = sysconfig.get_path("scripts")
    return {
        "HOME": str(home),
        "PATH": os.pathsep.join([scripts, os.environ["PATH"]]),
        "TOOLCRIB_DATA_DIR": str(home / "data"),
        "PIP_TARGET": str(home / "site"),
        "PIP_NO_DEPS": "1",
        **(WITHOUT_NETWORK if find_spec("hatchling") else {}),
        "PYTHONPATH": str(home / "site"),
        "COLUMNS": "80",
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("library")


@pytest.fixture(scope="module")
def printed(folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """What each command printed, the page followed from its top to its end."""
    found = {}
    for block in BLOCKS:
        if block.file:
            (folder / block.file).parent.mkdir(exist_ok=True)
            (folder / block.file).write_text(block.text, encoding="utf-8")
        for step in steps(block) if block.kind == "console" else ():
            ended = subprocess.run(
                ["bash", "-c", step.command],  # noqa: S607  # the page's readers have one too
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            found[step.command] = _BAR.sub("", ended.stdout)
    return found


@pytest.mark.parametrize("step", STEPS, ids=[step.command for step in STEPS])
def test_a_command_prints_what_the_page_shows(step: Step, printed: dict[str, str]) -> None:
    assert step.pattern.fullmatch(printed[step.command].strip()), printed[step.command]


@pytest.mark.anyio
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


def test_the_page_is_linked_and_links_to_what_is_there() -> None:
    assert "](first-tool.md)" in (DOCS / "functions.md").read_text(encoding="utf-8")
    for path, anchor in _LINK.findall(PAGE):
        target = (DOCS / path).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.+)$", target, re.MULTILINE)
        assert not anchor or anchor in {_anchor(heading) for heading in headings}, path


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")

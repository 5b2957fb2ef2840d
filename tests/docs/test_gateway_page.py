"""The page on other servers, held to what happens: its settings are read, its commands run.

What npx would download is a stand-in of this file, with the tools of the reference server that the
page calls.
"""

import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from server.settings.gateway import ProfileSettings, ServerSettings
from server.settings.sources import load
from tools.conversion.naming import LONGEST

pytestmark = pytest.mark.slow

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "gateway.md").read_text(encoding="utf-8")
SETTINGS_PAGE = (DOCS / "settings.md").read_text(encoding="utf-8")

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ ", re.MULTILINE)
_SCORE = re.compile(r" \d\.\d\d$")
_LINK = re.compile(r"\]\((?!http)([^)#]*)(?:#([\w-]+))?\)")

BLOCKS = _BLOCK.findall(PAGE)
TOML = [text for kind, text in BLOCKS if kind == "toml"]
STEPS = [
    each.split("\n", 1)
    for kind, text in BLOCKS
    if kind == "console"
    for each in _COMMAND.split(text)[1:]
]
(CURSOR,) = (text for kind, text in BLOCKS if kind == "json")
FIRST, RULES, TRUSTED, PROFILE = TOML[0], *TOML[-5:-2]
"""The blocks that a client is served with."""

STAND_IN = """
from typing import Annotated

import mcp_types as types
from mcp.server.mcpserver import MCPServer
from pydantic import Field

Number = Annotated[float, Field(strict=True)]  # as the real one is

server = MCPServer("stand-in")
reads = types.ToolAnnotations(read_only_hint=True)


@server.tool(name="get-sum", description="Returns the sum of two numbers", annotations=reads)
def get_sum(a: Number, b: Number) -> str:
    return f"The sum of {a:g} and {b:g} is {a + b:g}."


@server.tool(name="echo", description="Echoes back the input string", annotations=reads)
def echo(message: str) -> str:
    return f"Echo: {message}"


@server.tool(name="get-env", description="Returns all environment variables", annotations=reads)
def get_env() -> str:
    return "none"


server.run("stdio")
"""


@dataclass(frozen=True)
class Home:
    """A home with a stand-in for npx, and the settings file of the page."""

    path: Path
    environment: dict[str, str]

    @property
    def settings(self) -> Path:
        return self.path / "config.toml"

    def run(self, command: str) -> str:
        ended = subprocess.run(
            ["bash", "-c", command],  # noqa: S607  # the page's readers have one too
            cwd=self.path,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return ended.stdout

    def client(self, settings: str) -> Client:
        """A client of Toolcrib under such settings."""
        self.settings.write_text(settings, encoding="utf-8")
        command = str(Path(sysconfig.get_path("scripts"), "toolcrib"))
        return Client(StdioServerParameters(command=command, args=["serve"], env=self.environment))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    scripts = tmp_path / "bin"
    scripts.mkdir()
    (tmp_path / "stand_in.py").write_text(STAND_IN, encoding="utf-8")
    (scripts / "npx").write_text(f"#!/bin/sh\nexec {sys.executable} {tmp_path}/stand_in.py\n")
    (scripts / "npx").chmod(0o700)
    path = [str(scripts), sysconfig.get_path("scripts"), os.environ["PATH"]]
    environment = {
        "HOME": str(tmp_path),
        "PATH": os.pathsep.join(path),
        "TOOLCRIB_CONFIG": str(tmp_path / "config.toml"),
        "TOOLCRIB_DATA_DIR": str(tmp_path / "data"),
        "TOOLCRIB_ROOT": str(tmp_path / "bin"),
    }
    return Home(tmp_path, environment)


def pattern(shown: str) -> re.Pattern[str]:
    """What is to be printed: "…" is anything."""
    return re.compile(re.escape(shown.strip()).replace("…", ".*"), re.DOTALL)


def test_every_command_prints_what_the_page_shows(home: Home) -> None:
    home.settings.write_text(FIRST, encoding="utf-8")
    (home.path / ".cursor").mkdir()
    (home.path / ".cursor" / "mcp.json").write_text(CURSOR, encoding="utf-8")
    for command, shown in STEPS:
        printed = home.run(command)
        assert pattern(shown).fullmatch(printed.strip()), f"{command}\n{printed}"


@pytest.mark.parametrize("text", TOML)
def test_every_block_of_settings_is_read(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text, encoding="utf-8")
    settings = load({}, config_file=file, environ={})
    assert set(settings.servers) == set(tomllib.loads(text)["servers"])


async def test_the_model_finds_and_calls_what_the_page_says(home: Home) -> None:
    shown = next(text for kind, text in BLOCKS if kind == "text").strip()
    async with home.client(FIRST) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        assert not any("__" in name for name in listed)
        found = await said(client, "search_tools", query="add two numbers")
        assert _SCORE.sub("", found.splitlines()[0]) == _SCORE.sub("", shown)
        call = {"name": "get-sum", "arguments": {"a": 2, "b": 3}}
        assert await said(client, "call_tool", **call) == "The sum of 2 and 3 is 5."
        assert (await said(client, "everything__echo", message="x")).startswith("approval_required")


async def test_the_rules_of_the_page_do_what_it_says(home: Home) -> None:
    async with home.client(RULES) as client:
        await client.list_tools()
        assert await said(client, "everything__get-sum", a=2, b=3) == "The sum of 2 and 3 is 5."
        assert await said(client, "echo", message="hi") == "Echo: hi"
        assert (await said(client, "echo", message="no")).startswith("approval_required")
        assert (await said(client, "get-env")).startswith("permission_denied")


@pytest.mark.parametrize("rule", ["source:upstream:everything", "source:upstream", "scope:mcp"])
async def test_a_rule_about_a_whole_server_is_about_its_tools(home: Home, rule: str) -> None:
    policy = f'[policy]\nallow = ["everything__*"]\ndeny = ["{rule}"]\n'
    async with home.client(FIRST.partition("[policy]")[0] + policy) as client:
        await client.list_tools()
        assert (await said(client, "echo", message="x")).startswith("permission_denied")


async def test_a_trusted_server_s_tool_that_reads_runs_without_asking(home: Home) -> None:
    async with home.client(TRUSTED) as client:
        await client.list_tools()
        assert await said(client, "echo", message="x") == "Echo: x"


async def test_a_profile_hides_what_it_leaves_out(home: Home) -> None:
    settings = PROFILE.replace('"cursor*"', '"*"')
    async with home.client(settings) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        assert {"search_tools", "call_tool", "read_file"} <= listed
        assert "bash" not in listed
        assert (await said(client, "everything__get-env")).startswith(
            ("unknown_tool", "permission_denied")
        )
        assert (await said(client, "echo", message="x")).startswith("approval_required")


async def said(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    return "\n".join(getattr(each, "text", "") for each in result.content)


@pytest.mark.parametrize(
    ("heading", "model"), [("Servers", ServerSettings), ("Profiles", ProfileSettings)]
)
def test_the_tables_of_settings_have_every_key_once(heading: str, model: Any) -> None:
    section = SETTINGS_PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    keys = re.findall(r"^\| ([a-z_]+) \|", section, re.MULTILINE)
    assert keys == ["key", *model.model_fields]


def test_the_page_says_how_long_names_may_be() -> None:
    assert f"at most {LONGEST} characters" in PAGE


def links() -> Iterator[tuple[str, str]]:
    yield from _LINK.findall(PAGE)


@pytest.mark.parametrize(("path", "anchor"), sorted(set(links())))
def test_the_page_links_to_what_is_there(path: str, anchor: str) -> None:
    target = (DOCS / (path or "gateway.md")).read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", target, re.MULTILINE)
    assert not anchor or anchor in {_anchor(heading) for heading in headings}


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")

"""Our files of clients next to those that add-mcp (npm) writes for the same server.

ADD_MCP names the folder in which `npm install add-mcp@2.4.0` ran.
"""

import json
import os
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from server.clients.client import Client
from server.clients.launch import Wanted
from server.clients.locations import OwnAddress, command_path
from server.clients.pieces import Format, plan
from server.clients.table import CLIENTS, DESCRIPTION

NODE, FOLDER = shutil.which("node"), os.environ.get("ADD_MCP")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (NODE and FOLDER), reason="no Node.js, or ADD_MCP names no folder"),
]

SCRIPT = """
const { upsertServer, agents } = await import(process.argv[1]);
const told = {};
for (const [name, agent] of Object.entries(agents))
  for (const local of agent.localConfigPath ? [false, true] : [false]) {
    process.chdir(local ? `${process.env.HOME}/${name}` : "/");
    const server = { command: process.argv[2], args: ["serve"] };
    told[`${name} ${local ? "project" : "user"}`] = upsertServer(name, "toolcrib", server,
      { local });
  }
console.log(JSON.stringify(told));
"""
PARSE = {Format.JSON: json.loads, Format.TOML: tomllib.loads, Format.YAML: yaml.safe_load}

NOT_OURS = {"fx", "pi"}
"""Pi speaks MCP only with an adapter; fx is new to us."""

OTHER_FILE = {
    "opencode": ("opencode.jsonc", "opencode.json", "opencode's documentation names this one")
}
DIFFERENT = {
    "claude-code": ({"type": "stdio"}, "its documentation shows the type"),
    "vscode": ({"type": "stdio"}, "its documentation shows the type"),
    "cursor": ({"type": "stdio"}, "its documentation shows the type"),
    "codex": ({"default_tools_approval_mode": "approve"}, "calls reach Toolcrib's own policy"),
    "copilot": ({"tools": ["*"]}, "add-mcp leaves it out of projects, where it is harmless"),
    "goose": ({"description": DESCRIPTION}, "goose shows it in its list"),
}
"""What our entry has in addition, or with another value, and why."""

EMPTY: tuple[object, ...] = ({}, "")
"""Values that add-mcp writes and that mean the same as their absence."""


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files that add-mcp wrote, by its name of the client and the scope, and its home."""
    home = tmp_path_factory.mktemp("theirs")
    for name in {each for client in CLIENTS.values() for each in (client.name, *client.aliases)}:
        (home / name).mkdir()
    for name in NOT_OURS:
        (home / name).mkdir()
    library = f"{FOLDER}/node_modules/add-mcp/dist/lib.js"
    ended = subprocess.run(
        [str(NODE), "--input-type=module", "-e", SCRIPT, library, str(command_path())],
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(ended.stdout)
    assert all(each["success"] for each in told.values())
    return {"home": home, **{name: Path(each["path"]) for name, each in told.items()}}


def their_name(client: Client, theirs: dict[str, Path]) -> str:
    names = (client.name, *client.aliases)
    return next(each for each in names if f"{each} user" in theirs)


def ours(client: Client, home: Path, project: Path | None) -> tuple[Path, Any]:
    wanted = Wanted({"HOME": str(home)}, OwnAddress("", 0), project=project)
    file = wanted.file(client)
    assert file is not None
    (made,) = plan([wanted.entry(client, file)], wanted.own).changes
    return file, PARSE[client.kind]((made.after or b"").decode())


def test_we_know_every_client_that_add_mcp_knows(theirs: dict[str, Path]) -> None:
    known = {their_name(client, theirs) for client in CLIENTS.values()}
    assert {each.split()[0] for each in theirs} - known - {"home"} == NOT_OURS


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("client", CLIENTS.values(), ids=list(CLIENTS))
def test_the_file_and_the_entry_are_those_of_add_mcp(
    client: Client,
    scope: str,
    theirs: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    name = their_name(client, theirs)
    their_file = theirs.get(f"{name} {scope}")
    if scope == "project" and not client.project:
        assert their_file is None
        return
    assert their_file is not None
    below = name if scope == "project" else ""
    place, their_place = tmp_path / below, theirs["home"] / below
    file, document = ours(client, tmp_path, place if scope == "project" else None)
    expected = their_file.relative_to(their_place)
    if client.name in OTHER_FILE:
        old, new, _ = OTHER_FILE[client.name]
        expected = expected.with_name(expected.name.replace(old, new))
    assert file.relative_to(place) == expected
    their_document = PARSE[client.kind](their_file.read_text())
    mine, their_entry = document, their_document
    for key in (*client.tables[0], "toolcrib"):
        mine, their_entry = mine[key], their_entry[key]
    added, _ = DIFFERENT.get(client.name, ({}, ""))
    assert _meaning(mine) == _meaning(their_entry | added | _root(client, scope))


def _root(client: Client, scope: str) -> dict[str, Any]:
    if scope == "project" and client.root == "workspace":
        return {"args": ["serve", "--root", "${workspaceFolder}"]}
    return {}


def _meaning(entry: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if value not in EMPTY}

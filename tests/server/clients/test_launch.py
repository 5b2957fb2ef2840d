"""The command in clients' files, in the form of each client."""

import json
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from server.clients.client import Client, Launch
from server.clients.dialects import ClientFile, named_servers
from server.clients.entries import translate
from server.clients.launch import Wanted, own_launch, snippet
from server.clients.locations import OwnAddress, command_path
from server.clients.pieces import Format, plan
from server.clients.table import CLIENTS

OWN = OwnAddress("127.0.0.1", 8765)
PARSE = {Format.JSON: json.loads, Format.TOML: tomllib.loads, Format.YAML: yaml.safe_load}
PATHS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\0"), min_size=1)
ALL = pytest.mark.parametrize("client", CLIENTS.values(), ids=list(CLIENTS))


def wanted(home: Path, **other: Any) -> Wanted:
    return Wanted({"HOME": str(home), "PATH": ""}, OWN, **other)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def write(client: Client, asked: Wanted) -> Any:
    """Writes the entry as `install` does, and returns what the file says then."""
    file = asked.file(client)
    assert file is not None
    made = plan([asked.entry(client, file)], OWN)
    assert made.refusals == []
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(made.changes[0].after or b"")
    return PARSE[client.kind](file.read_text())


@ALL
@given(command=PATHS, root=PATHS)
def test_an_entry_holds_the_command_and_the_root_unchanged(
    client: Client, command: str, root: str
) -> None:
    launch = Launch(f"/{command}", ("serve", "--root", f"/{root}"))
    document = PARSE[client.kind](snippet(client, launch))
    for key in client.tables[0]:
        document = document[key]
    entry = document["toolcrib"]
    words = entry.get("command") or entry["cmd"]
    said = words if isinstance(words, list) else [words, *entry["args"]]
    assert said == launch.words


@ALL
def test_what_is_written_is_read_back_by_the_import_of_servers(client: Client, home: Path) -> None:
    asked = wanted(home, root=home / "notes")
    write(client, asked)
    file = asked.file(client)
    assert file is not None
    (named,) = named_servers([ClientFile(file, client)], home)
    fields = translate(named).fields
    assert fields["command"] == str(command_path())
    assert fields["args"] == ["serve", "--root", str(home / "notes")]
    assert fields.get("enabled", True)
    assert asked.configured(client) == (fields["command"], *fields["args"])


@ALL
def test_an_entry_keeps_its_options_until_others_are_given(client: Client, home: Path) -> None:
    write(client, wanted(home, root=home / "notes", options=("--data-dir", "/d")))
    write(client, wanted(home))
    kept = ("--root", str(home / "notes"), "--data-dir", "/d")
    assert wanted(home).configured(client)[1:] == ("serve", *kept)
    write(client, wanted(home, root=home / "other"))
    words = wanted(home).configured(client)
    assert words[1:] == ("serve", "--data-dir", "/d", "--root", str(home / "other"))


def test_a_switch_that_the_user_turned_is_not_turned_back(home: Path) -> None:
    asked = wanted(home)
    write(CLIENTS["opencode"], asked)
    file = asked.file(CLIENTS["opencode"])
    assert file is not None
    file.write_text(file.read_text().replace("true", "false"))
    assert write(CLIENTS["opencode"], asked)["mcp"]["toolcrib"]["enabled"] is False


def test_opencodes_newer_table_is_used_where_the_file_has_it(home: Path) -> None:
    asked = wanted(home)
    file = asked.file(CLIENTS["opencode"])
    assert file is not None
    file.parent.mkdir(parents=True)
    file.write_text('{"mcp": {"servers": {}}}')
    assert list(write(CLIENTS["opencode"], asked)["mcp"]["servers"]) == ["toolcrib"]


@pytest.mark.parametrize(
    ("name", "documents", "project", "root"),
    [
        ("claude-desktop", False, False, None),
        ("claude-desktop", True, False, "Documents"),
        ("claude-code", True, False, None),
        ("claude-code", True, True, None),
        ("vscode", True, False, None),
        ("vscode", True, True, "${workspaceFolder}"),
        ("cursor", True, True, "${workspaceFolder}"),
    ],
)
def test_the_root_is_the_project_or_documents_and_never_where_install_runs(
    name: str, documents: bool, project: bool, root: str | None, home: Path
) -> None:
    if documents:
        (home / "Documents").mkdir()
    asked = wanted(home, project=home / "project" if project else None)
    words = asked.launch(CLIENTS[name]).words
    expected = str(home / root) if root == "Documents" else root
    assert words[1:] == ["serve", *(["--root", expected] if expected else [])]


@pytest.mark.parametrize(("named", "root"), [("Dokumente", True), ("", False)])
def test_the_documents_folder_has_the_name_that_the_desktop_gave_it(
    named: str, root: bool, home: Path
) -> None:
    (home / ".config").mkdir()
    (home / ".config" / "user-dirs.dirs").write_text(f'XDG_DOCUMENTS_DIR="$HOME/{named}"\n')
    (home / named).mkdir(exist_ok=True)  # the home directory itself where there is no folder
    words = wanted(home).launch(CLIENTS["claude-desktop"]).words
    assert words[2:] == (["--root", str(home / named)] if root else [])


def test_codex_is_asked_to_let_calls_reach_our_policy_and_the_file_says_why(home: Path) -> None:
    document = write(CLIENTS["codex"], wanted(home))
    assert document["mcp_servers"]["toolcrib"]["default_tools_approval_mode"] == "approve"
    assert "# Codex refuses calls" in (home / ".codex" / "config.toml").read_text()


def test_an_environment_in_the_cache_of_uv_is_started_by_uvx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "uvx").touch()
    monkeypatch.setattr(sys, "prefix", "/home/you/.cache/uv/archive-v0/abc")
    made = own_launch({"UV": str(tmp_path / "uv"), "PATH": ""})
    assert made.command == str(tmp_path / "uvx")
    assert made.args[-1] == "toolcrib"
    monkeypatch.setattr(sys, "prefix", "/home/you/.local/share/uv/tools/toolcrib")
    assert own_launch({}).command == str(command_path())


def test_the_check_starts_what_the_file_says(home: Path) -> None:
    client = replace(CLIENTS["cursor"])
    assert wanted(home).configured(client) == ()
    write(client, wanted(home))
    assert wanted(home).configured(client) == (str(command_path()), "serve")


def test_an_entry_with_our_address_stays_as_it_is(home: Path) -> None:
    text = '{"mcpServers": {"mine": {"type": "http", "url": "http://127.0.0.1:8765/mcp"}}}'
    (home / ".claude.json").write_text(text)
    asked = wanted(home)
    assert write(CLIENTS["claude-code"], asked) == json.loads(text)
    assert asked.configured(CLIENTS["claude-code"]) == ()

"""`toolcrib install` and `uninstall` on a home directory with clients."""

import base64
import json
import os
import stat
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from server.clients.locations import command_path
from tests.server.cli.conftest import Command, terminal

CLAUDE = '{\n  "numStartups": 3,\n  "mcpServers": {}\n}\n'
ZED = '// mine\n{\n  "theme": "One Dark", // dark\n}\n'


@pytest.fixture
def home(work: Path) -> Path:
    """A home directory in which Claude Code, Codex and Zed were used."""
    home = work.parent / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".config" / "zed").mkdir(parents=True)
    (home / ".claude.json").write_text(CLAUDE)
    (home / ".config" / "zed" / "settings.json").write_text(ZED)
    return home


def files(home: Path) -> dict[Path, bytes]:
    return {each: each.read_bytes() for each in home.rglob("*") if each.is_file()}


def test_a_dry_run_shows_each_change_and_writes_nothing(cli: Command, home: Path) -> None:
    before = files(home.parent)
    ended = cli("install", "--dry-run")
    assert ended.code == 0
    for line in (
        "Claude Code  ~/.claude.json",
        "Codex  ~/.codex/config.toml (new file)",
        "Zed  ~/.config/zed/settings.json",
        "Claude Code  ~/.claude/settings.json (new file)",
        '  +default_tools_approval_mode = "approve"',
        "Nothing was written: 5 files would change.",
    ):
        assert line in ended.out.splitlines()
    assert files(home.parent) == before


def test_without_a_terminal_nothing_is_written_unless_it_is_confirmed(
    cli: Command, home: Path
) -> None:
    before = files(home)
    ended = cli("install")
    assert ended.code == 1
    assert "add --yes to write, or --dry-run" in ended.err
    assert files(home) == before


@pytest.mark.slow
def test_an_installation_is_tried_repeated_and_undone(cli: Command, home: Path) -> None:
    before = files(home)
    ended = cli("install", "--yes")
    assert (ended.code, ended.err) == (0, "")
    assert "Changed 5 files" in ended.out
    assert "Works in Claude Code, Codex, Zed: 14 tools after " in " ".join(ended.out.split())
    assert json.loads((home / ".claude.json").read_text())["mcpServers"]["toolcrib"] == {
        "type": "stdio",
        "command": str(command_path()),
        "args": ["serve", "--data-dir", str(home.parent / "data")],
    }
    hooks = json.loads((home / ".claude" / "settings.json").read_text())["hooks"]
    assert f"{command_path()} hook claude-code Stop --data-dir" in str(hooks["Stop"])
    (backup,) = home.glob(".claude.json.toolcrib-*.bak")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    written = files(home)
    again = cli("install", "--yes")
    assert "Nothing had to be changed." in again.out
    assert files(home) == written
    undone = cli("uninstall", "--yes")
    assert "Claude Code  ~/.claude.json: restored byte for byte" in undone.out
    assert files(home) == before
    assert "has written nothing" in cli("uninstall", "--yes").out


def test_hooks_can_be_left_out(cli: Command, home: Path) -> None:
    ended = cli("install", "--no-hooks", "--dry-run")
    assert "Nothing was written: 3 files would change." in ended.out
    assert " hook claude-code " not in ended.out


@pytest.mark.slow
def test_a_person_is_asked_once_and_no_is_an_answer(
    work: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files(home)
    with terminal("install", "zed") as shown:
        shown.expect("Change 1 file? [y/N]")
        shown.type("n\n")
        while shown.read():
            pass
        assert shown.process.wait(timeout=30) == 1
    assert files(home) == before


@pytest.mark.slow
def test_a_broken_file_is_left_alone_and_the_others_are_written(cli: Command, home: Path) -> None:
    (home / ".claude.json").write_text('{"mcpServers": ')
    ended = cli("install", "--yes")
    assert ended.code == 1
    assert "Claude Code  ~/.claude.json is left as it is:" in ended.out
    assert "it is not JSON: Expecting value: line 1 column 16" in ended.out
    assert "`toolcrib install --print claude-code`" in " ".join(ended.out.split())
    assert (home / ".claude.json").read_text() == '{"mcpServers": '
    assert "toolcrib" in (home / ".codex" / "config.toml").read_text()


@pytest.mark.slow
def test_a_command_that_does_not_start_is_reported(cli: Command, home: Path) -> None:
    entry = {"command": "/gone/bin/toolcrib", "args": ["serve", "--root", "/gone"]}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"tc": entry}}))
    ended = cli("install", "claude", "--yes")
    assert ended.code == 1
    assert "Does not work in Claude Code" in ended.err
    assert "/gone" in ended.err
    servers = json.loads((home / ".claude.json").read_text())["mcpServers"]
    assert servers["tc"]["command"] == str(command_path())


def test_the_files_of_a_project_name_no_absolute_root(cli: Command, work: Path, home: Path) -> None:
    ended = cli("install", "vscode", "claude-code", "--project", "--dry-run")
    assert ended.code == 0
    assert f"VS Code  {work / '.vscode' / 'mcp.json'} (new file)" in ended.out.replace(
        "\n      ", ""
    )
    assert '"${workspaceFolder}"' in ended.out
    assert f'"{work}"' not in ended.out
    refused = cli("install", "claude-desktop", "--project", "--dry-run")
    assert refused.code == 2
    assert "Claude Desktop has no files in projects" in " ".join(
        refused.err.replace("│", " ").split()
    )


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ((), "the project that it is in, or else {data}/files."),
        (("--root", "notes"), "{work}/notes."),
        (("--no-files",), "{data}/files."),
    ],
)
def test_the_directory_of_agents_is_named_before_anything_is_written(
    arguments: tuple[str, ...], place: str, cli: Command, work: Path, home: Path
) -> None:
    ended = cli("install", "zed", "codex", "--dry-run", *arguments)
    expected = place.format(work=work, data=home.parent / "data")
    assert f"Agents in Zed, Codex work on files in {expected}" in ended.out
    assert ("To change that: --root DIR" in ended.out) is not bool(arguments)


def test_the_root_of_the_settings_holds_in_every_client(cli: Command, work: Path) -> None:
    home = work.parent / "home"
    (home / ".config" / "Claude").mkdir(parents=True)
    (home / "Documents").mkdir()
    (work / "config.toml").write_text(f'root = "{work}"')
    ended = cli("install", "--dry-run", "--config", str(work / "config.toml"))
    assert f"Agents in Claude Desktop work on files in {work}, by the settings." in ended.out
    assert '"--root"' not in ended.out


@pytest.mark.slow
def test_without_files_a_server_starts_in_a_directory_of_its_own(cli: Command, home: Path) -> None:
    ended = cli("install", "zed", "--no-files", "--no-hooks", "--yes")
    assert (ended.code, ended.err) == (0, "")
    assert "Works in Zed" in ended.out


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("install", "emacs"), "'emacs' is not a client"),
        (("install", "--root", ".", "--no-files"), "exclude each other"),
        (("install", "--root", "nowhere"), "is not an existing directory"),
        (("uninstall", "emacs"), "'emacs' is not a client"),
    ],
)
def test_a_wrong_argument_is_named(cli: Command, arguments: tuple[str, ...], problem: str) -> None:
    ended = cli(*arguments)
    assert ended.code in {1, 2}
    assert problem in " ".join(ended.err.replace("│", " ").split())


def test_without_a_client_it_says_how_to_go_on(cli: Command, work: Path) -> None:
    ended = cli("install", "--yes")
    assert ended.code == 1
    assert "`toolcrib install cursor`" in ended.err


def test_an_entry_is_printed_for_any_client_and_in_the_form_of_each(
    cli: Command, work: Path
) -> None:
    entry = json.loads(cli("install", "--print", "--root", "notes").out)
    assert entry["mcpServers"]["toolcrib"]["args"][:3] == ["serve", "--root", str(work / "notes")]
    assert cli("install", "--print", "goose").out.startswith("extensions:\n  toolcrib:\n")


def test_links_open_the_installation_of_a_client(cli: Command, home: Path) -> None:
    lines = dict(line.split(": ", 1) for line in cli("install", "--link").out.splitlines())
    expected = {
        "command": str(command_path()),
        "args": ["serve", "--data-dir", os.environ["TOOLCRIB_DATA_DIR"]],
    }
    query = parse_qs(urlsplit(lines["Cursor"]).query)
    assert query["name"] == ["toolcrib"]
    assert json.loads(base64.b64decode(query["config"][0], validate=True)) == expected
    for title, scheme in (("VS Code", "vscode"), ("VS Code Insiders", "vscode-insiders")):
        vscode = json.loads(unquote(lines[title].removeprefix(f"{scheme}:mcp/install?")))
        assert vscode == {"name": "toolcrib", "type": "stdio", **expected}
    goose = parse_qs(urlsplit(lines["goose"]).query)
    assert [*goose["cmd"], *goose["arg"]] == [expected["command"], *expected["args"]]


def test_a_terminal_opens_a_link_on_a_click(work: Path) -> None:
    with terminal("install", "--link") as shown:
        shown.expect("\x1b]8;;cursor://anysphere.cursor-deeplink/mcp/install?name=toolcrib&config=")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("zed",), "Zed has no plugins; these have: claude-code, codex, gemini"),
        (("codex",), "codex is not on the PATH"),
        (("codex", "--project"), "leave out --project"),
    ],
)
def test_a_plugin_that_cannot_be_added_is_explained(
    arguments: tuple[str, ...],
    problem: str,
    cli: Command,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    ended = cli("install", "--plugin", *arguments)
    assert ended.code in {1, 2}
    assert problem in " ".join(ended.err.replace("│", " ").split())


def test_a_url_for_hooks_that_is_no_address_is_refused(cli: Command, home: Path) -> None:
    ended = cli("install", "claude-code", "--hooks-url", "127.0.0.1:8765", "--yes")
    assert (ended.code, "does not begin with http://" in ended.err) == (2, True)
    assert not (home / ".claude").exists()


@pytest.mark.slow
def test_the_program_of_a_client_adds_and_removes_the_plugin(
    cli: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs, data = home / "bin", home.parent / "data"
    programs.mkdir()
    (programs / "gemini").write_text(f'#!/bin/sh\necho "$@" >> {home}/ran; exit ${{FAILING:-0}}\n')
    (programs / "gemini").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    shown = cli("install", "gemini", "--plugin", "--dry-run")
    assert "gemini extensions install --consent" in shown.out
    assert not data.exists()
    monkeypatch.setenv("FAILING", "3")
    failed = cli("install", "gemini", "--plugin", "--yes")
    assert (failed.code, "failed: exit code 3" in failed.err) == (1, True)
    assert not list((data / "plugins").iterdir())
    monkeypatch.setenv("FAILING", "0")
    assert "Works in Gemini CLI" in cli("install", "gemini", "--plugin", "--yes").out
    manifest = data / "plugins" / "gemini" / "plugins" / "gemini" / "gemini-extension.json"
    server = json.loads(manifest.read_text("utf-8"))["mcpServers"]["toolcrib"]
    assert server == {"command": str(command_path()), "args": ["serve", "--data-dir", str(data)]}
    assert "Gemini CLI: has the plugin" in cli("install", "gemini", "--yes").out
    assert "plugin, " in cli("status").out
    removed = cli("uninstall", "gemini", "--yes")
    assert "Removed the plugin of Gemini CLI" in removed.out
    assert (home / "ran").read_text().splitlines()[-1] == "extensions uninstall toolcrib"
    assert cli("install", "gemini", "--plugin", "--yes").code == 0
    (programs / "gemini").unlink()  # the client was removed first
    removed = cli("uninstall", "gemini", "--yes")
    assert (removed.code, "may still have the plugin" in removed.out) == (1, True)
    assert not list((data / "plugins").iterdir())


def test_uninstall_names_an_entry_that_another_program_wrote(cli: Command, home: Path) -> None:
    entry = {"command": "/opt/bin/toolcrib", "args": ["serve"]}
    (home / ".claude.json").write_text(json.dumps({"mcpServers": {"tc": entry}}))
    ended = cli("uninstall", "--yes")
    assert "Claude Code still has 'tc' in ~/.claude.json" in ended.out


def test_marks_in_the_name_of_a_project_do_not_reach_the_terminal(
    cli: Command, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = home / "shop\n\x1b[2J"
    project.mkdir()
    monkeypatch.chdir(project)
    ended = cli("install", "claude", "--project", "--dry-run")
    assert ended.code == 0
    assert "\x1b" not in ended.out

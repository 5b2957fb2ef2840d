"""`toolcrib servers add`, `remove`, `enable`, `disable`, `undo` and `test`."""

import json
import sys
from pathlib import Path

import pytest

from tests.server.cli.conftest import Command, terminal

SERVER = Path(__file__).parents[2] / "upstream" / "changing_server.py"


@pytest.fixture
def file(work: Path) -> Path:
    """The settings file, with comments of a person."""
    path = Path.home() / ".config" / "toolcrib" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text('# mine\nsurface = ["lean"]\n\n[servers.old]  # keep\ncommand = "true"\n')
    return path


def test_a_server_is_added_and_the_rest_of_the_file_stays(cli: Command, file: Path) -> None:
    before = file.read_text()
    ended = cli("servers", "add", "toy", "--yes", "--lazy", "--", sys.executable, "-m", "x")
    assert ended.code == 0
    assert "  +[servers.toy]" in ended.out
    table = f'\n[servers.toy]\ncommand = "{sys.executable}"\nargs = ["-m", "x"]\nlazy = true\n'
    assert file.read_text() == before + table
    assert cli("servers", "undo", "--yes").code == 0
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("old", "--", "true"), "'old' is already a server"),
        (("My Server", "--", "true"), "such as my-server"),
        (("new", "--", "no-such-command"), "'no-such-command' was not found"),
        (("new", "ftp://host.example"), "use http:// or https://"),
        (("new", "https://:8/x"), "names no host"),
    ],
)
def test_what_could_never_run_is_not_added(
    cli: Command, file: Path, words: tuple[str, ...], said: str
) -> None:
    before = file.read_text()
    ended = cli("servers", "add", "--yes", *words)
    assert ended.code == 1
    assert said in ended.err
    assert file.read_text() == before


def test_a_typed_secret_is_warned_of_and_not_shown(cli: Command, file: Path) -> None:
    given = "API_KEY=sk-1234567890abcdef1234"
    ended = cli("servers", "add", "new", "--yes", "--env", given, "--", "true")
    assert "API_KEY looks like a secret" in ended.err
    assert "sk-1234567890abcdef1234" not in ended.out + ended.err
    named = cli("servers", "add", "other", "--yes", "--env", "API_KEY=${API_KEY:-x}", "--", "true")
    assert "looks like" not in named.err


def test_a_server_is_disabled_enabled_and_removed(cli: Command, file: Path) -> None:
    before = file.read_text()
    assert cli("servers", "disable", "old", "--yes").code == 0
    assert file.read_text() == f"{before}enabled = false\n"
    assert cli("servers", "enable", "old", "--yes").code == 0
    assert file.read_text() == before
    assert "Nothing had to be changed." in cli("servers", "enable", "old").out
    assert cli("servers", "remove", "old", "--yes").code == 0
    assert file.read_text() == '# mine\nsurface = ["lean"]\n'
    for _ in range(3):
        assert cli("servers", "undo", "--yes").code == 0
    assert file.read_text() == before


def test_a_server_that_a_profile_names_is_not_removed(cli: Command, file: Path) -> None:
    with file.open("a") as more:
        more.write('[profiles.all]\nclients = ["*"]\nallow = ["server:old"]\n')
    before = file.read_text()
    ended = cli("servers", "remove", "old", "--yes")
    assert ended.code == 1
    assert "profiles.all" in ended.err
    assert file.read_text() == before


def test_without_a_terminal_and_yes_nothing_is_written(cli: Command, file: Path) -> None:
    before = file.read_text()
    ended = cli("servers", "remove", "old")
    assert ended.code == 1
    assert "add --yes" in ended.err
    assert file.read_text() == before


@pytest.mark.slow
def test_a_person_is_asked_once(file: Path) -> None:
    before = file.read_text()
    with terminal("servers", "disable", "old") as screen:
        asked = False
        while screen.read():
            if not asked and "[y/N]" in screen.seen:
                asked = True
                screen.type("n\n")
    assert "+enabled = false" in screen.seen
    assert file.read_text() == before


@pytest.mark.slow
def test_a_server_is_tested_step_by_step(cli: Command, file: Path, tmp_path: Path) -> None:
    tools = tmp_path / "tools.json"
    tools.write_text(json.dumps([{"name": "add", "inputSchema": {"type": "object"}}]))
    cli("servers", "add", "toy", "--yes", "--", sys.executable, str(SERVER), str(tools))
    ended = cli("servers", "test", "toy")
    assert ended.code == 0
    assert [line.split()[0] for line in ended.out.splitlines()[1:]] == ["Connect", "List", "Close"]
    assert "1 tool, 0 resources, 0 prompts" in ended.out
    file.write_text(f'{file.read_text()}[servers.bad]\nurl = "http://127.0.0.1:9/mcp"\n')
    failed = cli("servers", "test", "bad")
    assert failed.code == 1
    assert "Connect failed after" in failed.err
    assert "Next: correct [servers.bad]" in failed.err

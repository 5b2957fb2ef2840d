import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from server.cli import main
from server.cli.commands import COMMANDS, app
from server.settings import Settings
from tests.server.cli.conftest import Command, terminal

RUNNER = CliRunner()


@pytest.fixture(autouse=True)
def no_settings_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


def ended(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    """The exit code of the command line with these arguments."""
    monkeypatch.setattr(sys, "argv", ["toolcrib", *arguments])
    with pytest.raises(SystemExit) as caught:
        main()
    return caught.value.code


def test_config_shows_every_setting_and_where_it_comes_from(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOOLCRIB_HTTP__PORT", "7")
    result = RUNNER.invoke(app, ["config", "--data-dir", str(tmp_path)])
    assert result.exit_code == 0
    lines = result.output.splitlines()
    rows = {line.split()[0]: line for line in lines if not line.startswith(" ")}
    assert list(rows) == [key for key, _ in Settings.fields()]
    assert rows["http.port"] == "http.port = 7  (environment variable TOOLCRIB_HTTP__PORT)"
    assert rows["http.token"] == "http.token = not set  (default)"
    assert rows["data_dir"] == f'data_dir = "{tmp_path}"  (--data-dir)'
    meaning = lines[lines.index(rows["http.port"]) + 1]
    assert meaning.startswith("    Port to listen on")


def test_config_as_json_is_json(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text("[http]\ntoken = 'sesame'\nallowed_hosts = ['[red]a[/red]']\n")
    result = RUNNER.invoke(app, ["config", "--json", "--config", str(file)])
    rows = {row["key"]: row for row in json.loads(result.output)}
    assert list(rows) == [key for key, _ in Settings.fields()]
    assert rows["http.token"]["value"] == "**********"
    assert rows["http.allowed_hosts"]["value"] == ["[red]a[/red]"]
    assert rows["http.token"]["source"] == str(file)


def test_no_secret_of_another_server_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    args = [
        *("-y", "toy", "--api-key", "geheim", "--header", "X: y", "TOKEN=geheim"),
        "https://a:geheim@b/",
    ]
    servers = {
        "toy": {"command": "npx", "args": args, "env": {"KEY": "geheim"}},
        "web": {"url": "https://ann:geheim@host/mcp?key=geheim", "token": "geheim"},
    }
    monkeypatch.setenv("TOOLCRIB_SERVERS", json.dumps(servers))
    result = RUNNER.invoke(app, ["config", "--json"])
    assert "geheim" not in result.output
    (shown,) = (row["value"] for row in json.loads(result.output) if row["key"] == "servers")
    assert shown["toy"]["args"][:3] == args[:3]
    assert shown["toy"]["args"][4:6] == args[4:6]
    assert shown["web"]["url"].startswith("https://")


def test_a_value_that_looks_like_markup_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_IDENTITY__USER_ID", "[red]ann[/red]")
    assert "[red]ann[/red]" in RUNNER.invoke(app, ["config"]).output


def test_a_wrong_setting_is_one_line_on_stderr_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOOLCRIB_HTTP__PORT", "web")
    assert ended(monkeypatch, "config") == 1
    written, complaint = capsys.readouterr()
    assert written == ""
    assert complaint.startswith("Error: http.port = 'web' (from environment variable TOOLCRIB_")
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [["confg"], ["config", "--nope"], ["config", "--root"], ["serve", "--transport", "smoke"]],
)
def test_a_wrong_usage_is_exit_code_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert ended(monkeypatch, *arguments) == 2
    assert "Error" in capsys.readouterr().err


def test_an_unknown_command_is_answered_with_the_nearest_known_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "confg") == 2
    assert "Did you mean 'config'?" in capsys.readouterr().err


def test_the_version_is_the_distributions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, "--version") == 0
    assert capsys.readouterr().out == f"toolcrib {version('toolcrib')}\n"


def rows_without_name_or_help(command: Any, *path: str) -> Iterator[str]:
    """What the help of a command, and of those in it, shows without its name or its text.

    Flags have no type: `<bool>` would read as a value to type.
    """
    output = RUNNER.invoke(app, [*path, "--help"], env={"COLUMNS": "80"}).output
    inner = {name: command.commands[name] for name in getattr(command, "commands", ())}
    shown = [(name, each.get_short_help_str()) for name, each in inner.items()]
    for each in command.params:
        named = max((*each.opts, *each.secondary_opts), key=len)
        name = named if each.param_type_name == "option" else each.metavar or f"{each.name}"
        shown.append((name, each.help or ""))
    if "<bool>" in output:
        yield f"{' '.join(path)}: <bool>"
    for name, text in shown:
        first = text.partition(" ")[0] or "(no text)"
        if not re.search(
            rf"^│[ *].*?{re.escape(name)}(\.\.\.)? .*{re.escape(first)}", output, re.MULTILINE
        ):
            yield f"{' '.join(path)} {name}: {text}"
    for name, each in inner.items():
        yield from rows_without_name_or_help(each, *path, name)


def test_the_help_of_every_command_names_and_explains_all_that_it_takes() -> None:
    root = typer.main.get_command(app)
    assert list(root.commands) == list(COMMANDS)  # type: ignore[attr-defined]  # it is a group
    assert list(rows_without_name_or_help(root)) == []


def test_the_help_loads_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from server.cli.commands import app\n"
        "app(['--help'], standalone_mode=False)\n"
        "heavy = {'mcp', 'uvicorn', 'chromadb', 'numpy', 'onnxruntime'} & set(sys.modules)\n"
        "sys.exit(' '.join(heavy) or None)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.fixture
def person(cli: Command, monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """The command line as a person has it: with a terminal as its input."""
    keyboard, screen = pty.openpty()
    with os.fdopen(screen) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        yield cli
    os.close(keyboard)


@pytest.fixture
def file(work: Path) -> Path:
    """The settings file, with a comment of its owner."""
    path = work.parent / "home" / ".config" / "toolcrib" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text("[search]\nalpha = 0.9  # mine\n\n# The web\n[http]\nport = 9000\n")
    return path


@pytest.mark.parametrize(
    ("key", "value", "written"),
    [
        ("search.alpha", "0.25", "alpha = 0.25  # mine"),
        ("http.host", "::1", 'host = "::1"'),
        ("identity.user_id", "42", 'user_id = "42"'),
        ("memory.record", "false", "record = false"),
        ("policy.allow", "bash(make),bash(git log *)", 'allow = ["bash(make)", "bash(git log *)"]'),
        ("policy.deny", '["bash(rm *)"]', 'deny = ["bash(rm *)"]'),
        ("surface", "lean", 'surface = ["lean"]'),
    ],
)
def test_a_setting_is_written_and_the_rest_of_the_file_stays(
    person: Command, file: Path, key: str, value: str, written: str
) -> None:
    before = file.read_text()
    assert person("config", "set", key, value).code == 0
    lines = file.read_text().splitlines()
    assert written in lines
    assert [line for line in before.splitlines() if line not in lines] in (
        [],
        ["alpha = 0.9  # mine"],
    )
    assert person("config", "unset", key).code == 0
    assert written not in file.read_text().splitlines()


def test_a_byte_order_mark_stays(person: Command, file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf[search]\r\nalpha = 0.9\r\n")
    assert person("config", "set", "search.alpha", "0.2").code == 0
    assert file.read_bytes() == b"\xef\xbb\xbf[search]\r\nalpha = 0.2\r\n"


def test_a_file_with_a_secret_becomes_private(person: Command, file: Path) -> None:
    file.chmod(0o644)
    person("config", "set", "search.alpha", "0.2")
    assert file.stat().st_mode & 0o777 == 0o644
    person("config", "set", "http.token", "a-long-enough-token-of-this-test")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_file_that_is_not_text_is_named(person: Command, file: Path) -> None:
    file.write_bytes(b"\xff")
    assert f"{file} cannot be read" in " ".join(person("config", "edit").err.split())


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("set", "search.alpha", "7"), "search.alpha = 7 (from "),
        (("set", "search.alhpa", "0.1"), "Did you mean 'search.alpha'?"),
        (("set", "http.token.more", "x"), "Unknown setting 'http.token.more'"),
        (("get", "search"), "Unknown setting 'search'"),
    ],
)
def test_what_cannot_be_set_changes_nothing(
    person: Command, file: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    before = file.read_bytes()
    ended = person("config", *arguments)
    assert ended.code == 1
    assert complaint in ended.err
    assert file.read_bytes() == before


def test_only_a_person_at_a_terminal_changes_settings(cli: Command, file: Path) -> None:
    before = file.read_bytes()
    for arguments in (("set", "search.alpha", "0.1"), ("unset", "search.alpha"), ("edit",)):
        assert "requires an interactive terminal" in cli("config", *arguments).err
    assert file.read_bytes() == before


def test_one_setting_is_printed_so_that_a_script_can_use_it(cli: Command, file: Path) -> None:
    assert cli("config", "get", "http.port").out == "9000\n"
    assert cli("config", "get", "identity.user_id").out == "local\n"
    assert cli("config", "get", "http.allowed_hosts").out == "[]\n"
    assert cli("config", "path").out == f"{file}\n"


def test_a_value_that_the_environment_overrides_is_reported(
    person: Command, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLCRIB_HTTP__PORT", "7")
    ended = person("config", "set", "http.port", "8000")
    assert "port = 8000" in file.read_text()
    assert "no effect while http.port comes from the environment variable" in ended.err


@pytest.mark.parametrize(
    ("editor", "ending"),
    [
        ("sed -i s/9000/9001/", (0, "port = 9001\n")),
        ("true", (0, "port = 9000\n")),
        ("false", (1, "port = 9000\n")),
        ("no-such-editor", (1, "port = 9000\n")),
    ],
)
def test_an_edited_file_counts_only_if_the_editor_succeeds(
    person: Command,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    editor: str,
    ending: tuple[int, str],
) -> None:
    monkeypatch.setenv("EDITOR", editor)
    monkeypatch.delenv("VISUAL", raising=False)
    ended = person("config", "edit")
    assert (ended.code, file.read_text().splitlines(keepends=True)[-1]) == ending


def test_a_broken_file_can_be_mended_by_editing_it(
    person: Command, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("[http\nport = 9000\n")
    monkeypatch.setenv("EDITOR", "sed -i s/http/http]/")
    monkeypatch.delenv("VISUAL", raising=False)
    assert person("config", "edit").code == 0
    assert file.read_text() == "[http]\nport = 9000\n"


def test_taking_out_what_is_not_in_the_file_changes_nothing(person: Command, file: Path) -> None:
    before = file.read_bytes()
    assert person("config", "unset", "log.level").out == "Nothing was changed.\n"
    assert file.read_bytes() == before


@pytest.mark.slow
def test_an_edited_file_that_is_invalid_is_edited_again_or_stays_as_it_was(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VISUAL", "sed -i s/9000/700000/")
    before = file.read_bytes()
    with terminal("config", "edit") as shown:
        shown.expect("http.port = 700000")
        shown.expect("Edit it again?")
        shown.type("n\n")
        assert shown.process.wait() == 1
    assert file.read_bytes() == before

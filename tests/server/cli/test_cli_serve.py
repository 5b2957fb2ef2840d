import json
import os
import pty
import resource
import shlex
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from itertools import takewhile
from pathlib import Path

import pytest

from server.cli import main
from server.cli.serving import MOST_FILES
from server.clients.locations import command_path
from storage.database import Database
from tests.conftest import RawServer

pytestmark = pytest.mark.slow

SERVE = [sys.executable, "-c", "from server.cli import main; main()", "serve"]


def ended(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What became of `toolcrib serve` with its stdin closed by the client at once."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith("TOOLCRIB_")}
    return subprocess.run(
        [*SERVE, *arguments],
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=30,
        env={**environ, "HOME": str(directory / "home")},
        cwd=directory,
    )


def test_what_is_kept_is_private_to_its_user(tmp_path: Path) -> None:
    server = ended(tmp_path, "--data-dir", str(tmp_path / "data"))
    assert (server.returncode, server.stdout) == (0, "")
    for path in (tmp_path / "data", *(tmp_path / "data").rglob("*")):
        assert path.stat().st_mode & 0o077 == 0, path


def test_it_may_open_as_many_files_as_the_system_allows(
    tmp_path: Path, raw_server: type[RawServer]
) -> None:
    ours = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = len(list(Path("/proc/self/fd").iterdir())) + 100  # this process may have many open
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, ours[1]))
    try:
        server = raw_server(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, ours)
    server.call("list_directory", path=".")  # its first reply comes before all else is loaded
    soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    server.close()
    assert hard == ours[1]
    assert soft == min(hard, MOST_FILES)


def test_a_rule_that_allows_any_program_is_told_once_at_the_start(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text('[policy]\nallow = ["bash(make *)", "bash(git status *)"]\n')
    server = ended(tmp_path, "--data-dir", str(tmp_path / "data"), "--config", str(config))
    assert (server.returncode, server.stdout) == (0, "")
    assert server.stderr.count("Policy: ") == 1
    assert (
        "Policy: the rule 'bash(make *)' allows anything that make can be made to run"
        in server.stderr
    )


def test_a_data_directory_that_cannot_be_made_is_one_line_on_stderr(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    server = ended(tmp_path, "--data-dir", str(tmp_path / "file" / "data"))
    assert (server.returncode, server.stdout) == (1, "")
    assert server.stderr.startswith("Error: data_dir = ")
    assert server.stderr.count("\n") == 1


def test_a_data_directory_of_a_development_version_is_refused_by_serve_and_by_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    Database(data / "toolcrib.db").close()
    with closing(sqlite3.connect(data / "toolcrib.db")) as connection:
        connection.execute("PRAGMA user_version = 24")
    before = (data / "toolcrib.db").read_bytes()
    server = ended(tmp_path, "--data-dir", str(data))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "argv", ["toolcrib", "query", "bread", "--data-dir", str(data)])
    with pytest.raises(SystemExit) as exit_of_query:
        main()
    assert (server.returncode, server.stdout, exit_of_query.value.code) == (1, "", 1)
    for errors in (server.stderr, capsys.readouterr().err):
        assert f"Error: {data / 'toolcrib.db'} has schema 24 of a development version" in errors
        assert "the command `export FILE` of the version that wrote it" in errors
        assert "toolcrib import FILE`." in errors
    assert (data / "toolcrib.db").read_bytes() == before


def test_at_a_terminal_it_says_how_to_connect_a_client_and_ctrl_c_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(command_path().parent))
    ours, its = pty.openpty()
    arguments = ["--data-dir", str(tmp_path / "data"), "--root", str(tmp_path)]
    server = subprocess.Popen(
        [command_path(), "serve", *arguments],
        stdin=its,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    os.close(its)
    assert server.stderr is not None
    told = list(takewhile(lambda line: not line.startswith("Over HTTP: "), server.stderr))
    server.send_signal(signal.SIGINT)
    out, err = server.communicate(timeout=30)
    os.close(ours)
    assert server.returncode in {0, 130}  # the latter if it had not begun to wait
    assert (out, err) == ("", "")
    assert "nothing to type here. Press Ctrl-C to stop.\n" in told
    connect = next(line for line in told if line.startswith("claude mcp add "))
    words = shlex.split(connect)
    expected = ["serve", "--root", str(tmp_path), "--data-dir", str(tmp_path / "data")]
    assert words[words.index("--") + 1 :] == [str(command_path()), *expected]
    written = "".join(told[told.index("{\n") : told.index("}\n") + 1])
    assert json.loads(written)["mcpServers"]["toolcrib"]["args"] == expected


def test_without_a_terminal_it_says_nothing(tmp_path: Path) -> None:
    assert ended(tmp_path, "--data-dir", str(tmp_path / "data")).stderr == ""


@pytest.mark.parametrize("transport", ["sse", "http"])
def test_a_port_in_use_is_exit_code_1(tmp_path: Path, transport: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        server = ended(
            tmp_path, "--transport", transport, "--port", port, "--data-dir", str(tmp_path / "data")
        )
    assert server.returncode == 1
    assert f"Error: Listening on 127.0.0.1 port {port} is in use." in server.stderr

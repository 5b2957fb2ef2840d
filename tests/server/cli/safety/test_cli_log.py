"""`toolcrib log` shows what the audit log has, whoever writes it, and steers no terminal."""

import json
import os
import pty
import re
import signal
import subprocess
import sysconfig
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.server.cli.conftest import Command, Started
from tools.core.audit.recording import AuditFile
from tools.core.audit.trail import rotated

WILD_FIELDS = ("tool", "client", "user", "rule", "outcome", "verdict", "milliseconds")


def entry(number: int = 0, **changed: Any) -> bytes:
    """A line of the log."""
    line = {
        "time": f"2026-01-0{1 + number % 9}T10:00:00.000Z",
        "call": f"{number:016x}",
        "user": "ann",
        "client": "Cursor",
        "tool": "bash",
        "arguments": {"command": f"echo {number}"},
        "verdict": "allow",
        "rule": "bash(echo *)",
        "rule_source": "settings",
        "approved_by": None,
        "outcome": "ok",
        "milliseconds": 12.5,
        "sandbox": "landlock",
    }
    return json.dumps(line | changed).encode()


@pytest.fixture
def path(work: Path) -> Path:
    return work.parent / "data" / "audit" / "calls.jsonl"


@pytest.fixture
def file(path: Path) -> AuditFile:
    return AuditFile(path, max_bytes=3_000, backups=100)


def commands(out: str) -> list[str]:
    return [json.loads(line)["arguments"]["command"] for line in out.splitlines()]


def test_a_call_is_one_line_that_says_all_that_matters(cli: Command, file: AuditFile) -> None:
    file.append(entry(3, approved_by="client", verdict="ask", called_by="run_code"))
    ended = cli("log")
    assert (ended.code, ended.err) == (0, "")
    (line,) = ended.out.splitlines()
    for part in ("2026-01-04", "ok", "bash", "command=echo 3", "ask by bash(echo *)"):
        assert part in line
    for part in ("approved by client", "12.5 ms", "sandbox landlock", "ann/Cursor"):
        assert part in line
    assert "called by run_code" in line


def test_real_calls_are_shown(cli: Command) -> None:
    cli("call", "list_directory")
    cli("call", "read_file", "file_path=../secret")
    lines = cli("log").out.splitlines()
    assert [line.split()[2:4] for line in lines] == [
        ["ok", "list_directory"],
        ["outside_sandbox", "read_file"],
    ]
    assert len(cli("log", "--outcome", "outside_sandbox").out.splitlines()) == 1


def test_the_last_calls_are_shown_over_rotated_files_in_their_order(
    cli: Command, file: AuditFile, path: Path
) -> None:
    for number in range(100):
        file.append(entry(number))
    assert len(rotated(path)) > 5
    assert commands(cli("log", "--json").out) == [f"echo {number}" for number in range(80, 100)]
    assert commands(cli("log", "--json", "--last", "1000").out) == [
        f"echo {number}" for number in range(100)
    ]
    assert len(cli("log", "--last", "7").out.splitlines()) == 7


@pytest.mark.parametrize(
    ("options", "numbers"),
    [
        (["--tool", "read_file"], [0]),
        (["--outcome", "ok"], [0, 4]),
        (["--outcome", "failed"], [1]),
        (["--outcome", "not_found"], [1]),
        (["--outcome", "cancelled"], [2]),
        (["--outcome", "awaiting"], [3]),
        (["--verdict", "deny"], [1]),
        (["--user", "bob"], [2]),
        (["--user", "bob", "--tool", "read_file"], []),
        (["--since", "2026-01-04T00:00:00+00:00"], [3, 4]),
        (["--since", "2026-01-04T10:00:00Z", "--outcome", "ok"], [4]),
        (["--since", "1000w"], [0, 1, 2, 3, 4]),
        (["--last", "2"], [3, 4]),
        (["--last", "0"], []),
    ],
)
def test_calls_are_filtered(
    cli: Command, file: AuditFile, options: list[str], numbers: list[int]
) -> None:
    file.append(entry(0, tool="read_file"))
    file.append(entry(1, outcome="not_found", verdict="deny"))
    file.append(entry(2, outcome="cancelled", user="bob"))
    file.append(entry(3, outcome="awaiting"))
    file.append(entry(4))
    ended = cli("log", "--json", *options)
    assert commands(ended.out) == [f"echo {number}" for number in numbers]
    assert ("No such call" in ended.err) == (not numbers and options != ["--last", "0"])


@pytest.mark.parametrize("since", ["yesterday", "2x", "-3h", "", "2026-13-01", "99999999999d"])
def test_a_time_that_is_none_is_refused(cli: Command, since: str) -> None:
    ended = cli("log", "--since", since)
    assert ended.code == 2
    assert "--since" in ended.err


def test_a_log_that_there_is_not_is_empty(cli: Command, path: Path) -> None:
    ended = cli("log")
    assert (ended.code, ended.out) == (0, "")
    assert "No such call" in ended.err
    assert not path.exists()


def test_what_is_no_entry_is_counted_and_what_follows_it_is_shown(
    cli: Command, file: AuditFile, path: Path
) -> None:
    file.append(entry(1))
    with path.open("ab") as log:
        log.write(b'{"time":"2026-01-0' + entry(2) + b"\n")  # cut short, as on a full disk
        log.write(b"\n\xff\xfe\n[]\nnull\n{}\n" + b"[" * 100_000 + b"\n" + entry(3) + b"\n")
        log.write(b'{"time":"2026')
    ended = cli("log", "--json")
    assert commands(ended.out) == ["echo 1", "echo 2", "echo 3"]
    assert "cannot be read: 5" in ended.err


@pytest.mark.parametrize(
    "wild",
    ["\x1b[2J\x1b]0;owned\x07", "a\nb", "\x9b31m", "\u202egpj.exe", "[bold]x[/bold]", "\ud800"],
)
def test_nothing_that_is_shown_steers_the_terminal(
    cli: Command, file: AuditFile, wild: str
) -> None:
    file.append(
        entry(
            1,
            arguments={wild: wild, "nested": {"deep": [wild]}},
            **dict.fromkeys(WILD_FIELDS, wild),
        )
    )
    out = cli("log").out
    assert out.count("\n") == 1
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(out)
    assert ("[bold]" in out) == (wild == "[bold]x[/bold]")
    assert cli("log", "--json").out.isascii()


@pytest.mark.parametrize(
    "changed",
    [
        {"arguments": None},
        {"arguments": []},
        {"time": "soon"},
        {"time": "0001-01-01T00:00:00+23:59"},
        {"time": "9999-12-31T23:59:59-23:59"},
        {"outcome": []},
        {"outcome": {}},
        {"milliseconds": "long"},
    ],
)
def test_an_entry_of_another_make_is_shown_as_well(
    cli: Command, file: AuditFile, changed: dict[str, Any]
) -> None:
    file.append(entry(1, **changed))
    assert "bash" in cli("log").out
    assert "bash" in cli("log", "--outcome", str(changed.get("outcome", "ok"))).out


@pytest.mark.parametrize("kind", ["pipe", "link", "dangling link", "directory"])
@pytest.mark.parametrize("name", ["calls.jsonl", "calls.jsonl.1"])
def test_what_is_no_file_is_told_and_neither_read_nor_waited_for(
    cli: Command, file: AuditFile, path: Path, kind: str, name: str
) -> None:
    file.append(entry(1))
    odd = path.with_name(name)
    path.rename(path.with_name("elsewhere"))
    match kind:
        case "pipe":
            os.mkfifo(odd)
        case "directory":
            odd.mkdir()
        case _:
            odd.symlink_to("elsewhere" if kind == "link" else "nothing")
    ended = cli("log")
    assert (ended.code, ended.out) == (1, "")
    assert "the audit log cannot be read" in ended.err


def test_long_arguments_are_shown_in_short(cli: Command, file: AuditFile) -> None:
    file.append(entry(1, arguments={"command": "x" * 10_000}))
    (line,) = cli("log").out.splitlines()
    assert "x" * 100 in line
    assert len(line) < 500


def test_calls_are_followed_over_rotations_and_from_several_processes(
    toolcrib: Started, file: AuditFile, path: Path
) -> None:
    other = AuditFile(path, max_bytes=3_000, backups=100)
    file.append(entry(0))
    started = toolcrib("log", "-f", "--json", "--tool", "bash", "--last", "5")
    assert started.stdout is not None
    try:
        assert commands(started.stdout.readline()) == ["echo 0"]
        for number in range(1, 60):
            (file, other)[number % 2].append(entry(number))
            file.append(entry(number, tool="another"))
        followed = "".join(started.stdout.readline() for _ in range(1, 60))
    finally:
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=20)
    assert commands(followed) == [f"echo {number}" for number in range(1, 60)]
    assert (started.returncode, said) == (0, "")
    assert len(rotated(path)) > 10


def test_a_log_is_followed_from_before_its_first_line(toolcrib: Started, file: AuditFile) -> None:
    started = toolcrib("log", "-f", "--json")
    assert started.stdout is not None
    assert started.stderr is not None
    assert "No such call" in started.stderr.readline()
    file.append(entry(1))
    assert commands(started.stdout.readline()) == ["echo 1"]
    started.send_signal(signal.SIGTERM)
    started.communicate(timeout=20)


def test_on_a_terminal_each_call_has_one_coloured_line_that_fits_and_its_verdict_below(
    work: Path, file: AuditFile
) -> None:
    rule = "scope:system+effect:execute+source:function+only:read,execute,external"
    file.append(entry(1, arguments={"command": "y" * 300}))
    file.append(entry(2, outcome="not_found", verdict="ask", rule=rule))
    shown = b""
    parent, child = pty.openpty()
    try:
        subprocess.run(
            [Path(sysconfig.get_path("scripts"), "toolcrib"), "log"],
            stdout=child,
            env={**os.environ, "COLUMNS": "80", "TERM": "xterm-256color"},
            check=True,
        )
        os.close(child)
        with suppress(OSError):  # how a terminal ends
            while data := os.read(parent, 4_096):
                shown += data
    finally:
        os.close(parent)
    first, why, second, *why_second, rest = shown.decode().split("\r\n")
    assert rest == ""
    assert "\x1b[32m" in first
    assert "\x1b[31m" in second
    assert "…" in first
    assert "allow by bash(echo *) (settings), 12.5 ms, sandbox landlock, ann/Cursor" in why
    rows = [re.sub(r"\x1b\[\d*m", "", row) for row in why_second]
    assert all(row.startswith("    ") and len(row) <= 80 for row in rows)
    told = "".join(row.removeprefix("    ") for row in rows)
    assert "".join(f"ask by {rule} (settings)".split()) in "".join(told.split())

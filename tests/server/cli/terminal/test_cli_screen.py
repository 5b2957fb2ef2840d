"""How lines are shown to a person, on real terminals."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

import server.cli
from server.cli.checks.findings import Finding, show

LINE = "    A tool says that it adds two numbers, and multiplies them by a third: a-very-long-name"


def on_terminal(columns: int, code: str) -> list[str]:
    """The rows that a program prints on a terminal with so many columns, without styles."""
    keyboard, screen = pty.openpty()
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=screen, stderr=screen, env=environment
    )
    os.close(screen)
    shown = b""
    try:
        while True:
            try:
                shown += os.read(keyboard, 4096)
            except OSError:  # the other end is closed
                break
    finally:
        process.wait()
        os.close(keyboard)
    return shown.decode().replace("\r\n", "\n").rstrip("\n").split("\n")


@pytest.mark.parametrize("function", ["say(line)", "print(wrapped(line))"])
@pytest.mark.parametrize("columns", [24, 40, 80])
def test_a_long_line_goes_on_deeper_at_the_end_of_a_word(function: str, columns: int) -> None:
    rows = on_terminal(
        columns, f"from server.cli.terminal.screen import say, wrapped; line = {LINE!r}; {function}"
    )
    assert len(rows) > 1
    assert max(map(len, rows)) <= columns
    assert all(row.startswith("      ") and row[6] != " " for row in rows[1:])
    assert [word for row in rows for word in row.split()] == LINE.split()


def test_a_word_that_no_row_holds_is_cut_and_nothing_of_it_lost() -> None:
    rows = on_terminal(
        30, "from server.cli.terminal.screen import wrapped; print(wrapped('x' * 100))"
    )
    assert rows[0] == "x" * 30
    assert "".join(row.strip() for row in rows) == "x" * 100


def test_wide_characters_keep_within_the_terminal() -> None:
    rows = on_terminal(
        20, "from server.cli.terminal.screen import wrapped; print(wrapped('a 工具 ' * 20))"
    )
    assert all(len(row.encode("gb18030")) <= 20 for row in rows)  # two bytes a wide one
    assert "".join(row.strip() for row in rows).replace(" ", "") == "a工具" * 20


def test_a_finding_with_a_long_subject_is_in_line_with_the_others(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    show(Finding("Root", ok=True, detail="/srv"))
    show(Finding("Server tickets-of-the-department", ok=False, detail="/gone"))
    short, subject, long = capsys.readouterr().out.splitlines()
    assert subject.strip() == "Server tickets-of-the-department"
    assert short.index("ok") == long.index("fails")
    assert short.index("/srv") == long.index("/gone")


STEERING = "\x1b[2J\x1b]0;title\x07\u202egpj.exe\x9b31m\u2066x\u200b"


@pytest.mark.parametrize(
    "function", ["echo(line)", "echo(line, err=True)", "say(line)", "print_json(line)"]
)
def test_nothing_that_a_command_prints_steers_the_terminal(function: str) -> None:
    code = f"from server.cli.terminal.screen import *; line = {STEERING!r}; {function}"
    shown = "".join(on_terminal(200, code))
    assert not re.search(r"\x1b\[2J|\x1b\]|[\x07\x9b\u202e\u2066\u200b]", shown)
    assert "gpj.exe" in shown


def test_a_pipe_gets_a_text_as_it_is() -> None:
    code = f"from server.cli.terminal.screen import echo; echo({STEERING!r})"
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert piped.stdout.decode() == STEERING + "\n"


def test_a_stored_plan_is_harmless_on_a_terminal(tmp_path: Path) -> None:
    arguments = json.dumps({"goal": f"goal {STEERING}", "steps": [{"title": f"step {STEERING}"}]})
    command = ["call", "create_plan", "--json", arguments, "--data-dir", str(tmp_path)]
    code = f"import sys; sys.argv[1:] = {command!r}; from server.cli import main; main()"
    shown = "".join(on_terminal(200, code))
    assert "gpj.exe" in shown
    assert not re.search(r"[\x1b\x07\x9b\u202e\u2066\u200b]", shown)


def test_commands_print_through_the_screen_alone() -> None:
    cli = Path(server.cli.__file__).parent
    printing = re.compile(
        r"\b(?:typer|click)\.s?echo\(|(?<![\w.])print\(|sys\.std(?:out|err)\.write\("
    )
    found = {
        str(path.relative_to(cli)): [
            line for line in path.read_text().splitlines() if printing.search(line)
        ]
        for path in cli.rglob("*.py")
    }
    assert {name for name, lines in found.items() if lines} == {"serving.py"}  # its own words

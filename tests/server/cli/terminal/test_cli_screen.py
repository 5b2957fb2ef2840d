"""How lines are shown to a person, on real terminals."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

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

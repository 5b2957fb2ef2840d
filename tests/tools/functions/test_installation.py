from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.functions.installation import (
    KEPT_CHARACTERS,
    KEPT_LINES,
    LONGEST,
    InstallerFailedError,
    run_installer,
)


class Told(list[str]):
    """Keeps what is reported."""

    async def __call__(self, line: str) -> None:
        self.append(line)


async def run(program: str, told: Told, cwd: Path) -> None:
    await run_installer([sys.executable, "-c", program], environ={}, cwd=cwd, report=told)


@pytest.mark.anyio
async def test_telling_lines_are_told_without_escape_sequences(tmp_path: Path) -> None:
    told = Told()
    await run(r"print('noise\n\033[1m Downloading\033[0m numpy (16 MB)\nnoise')", told, tmp_path)
    assert told == ["Downloading numpy (16 MB)"]


@pytest.mark.anyio
async def test_of_a_flood_the_last_line_gets_through(tmp_path: Path) -> None:
    told = Told()
    await run("for n in range(20_000): print('Downloading', n)", told, tmp_path)
    assert told[-1] == "Downloading 19999"
    assert len(told) < 200


@pytest.mark.anyio
async def test_a_long_line_is_told_in_short(tmp_path: Path) -> None:
    told = Told()
    await run("print('Downloading', 'x' * 1000)", told, tmp_path)
    assert [len(line) for line in told] == [LONGEST]


@pytest.mark.anyio
async def test_a_failure_keeps_the_end_of_the_output(tmp_path: Path) -> None:
    program = (
        "import sys; print(*range(1000), sep='\\n\\n', flush=True);"
        r"sys.stdout.buffer.write(b'\xff' * 9_999_999 + b'\n'); sys.stdout.flush();"
        "sys.exit('the reason')"
    )
    with pytest.raises(InstallerFailedError) as caught:
        await run(program, Told(), tmp_path)
    lines = caught.value.lines
    assert lines[-1] == "the reason"
    assert lines[-2] == "\ufffd" * KEPT_CHARACTERS
    assert lines[-3] == "999"
    assert len(lines) == KEPT_LINES


@pytest.mark.anyio
async def test_an_installer_that_a_signal_ends_has_failed(tmp_path: Path) -> None:
    with pytest.raises(InstallerFailedError):
        await run("import os; os.kill(os.getpid(), 9)", Told(), tmp_path)


@pytest.mark.anyio
async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InstallerFailedError, match=r"No such file.*/nowhere/uv"):
        await run_installer(["/nowhere/uv"], environ={}, cwd=tmp_path, report=Told())


@pytest.mark.anyio
async def test_an_installer_asks_no_questions(tmp_path: Path) -> None:
    with pytest.raises(InstallerFailedError, match="EOFError"):
        await run("input()", Told(), tmp_path)

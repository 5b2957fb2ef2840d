from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools.functions.installer import OUTPUT_LINES, CommandFailedError, run_command


class Reported(list[str]):
    """Keeps what is reported."""

    async def __call__(self, line: str) -> None:
        self.append(line)


async def run(program: str, reported: Reported, cwd: Path) -> None:
    command = [sys.executable, "-c", program]
    await run_command(command, environ={}, cwd=cwd, report=reported)


@pytest.mark.anyio
async def test_lines_of_progress_are_reported(tmp_path: Path) -> None:
    reported = Reported()
    await run(r"print('noise\n Downloading numpy (16 MB)\nnoise')", reported, tmp_path)
    assert reported == ["Downloading numpy (16 MB)"]


@pytest.mark.anyio
async def test_a_failure_keeps_the_end_of_the_output(tmp_path: Path) -> None:
    program = (
        "import sys; print(*range(1000), sep='\\n\\n', flush=True);"
        r"sys.stdout.buffer.write(b'\xff\n'); sys.stdout.flush(); sys.exit('the reason')"
    )
    with pytest.raises(CommandFailedError) as caught:
        await run(program, Reported(), tmp_path)
    lines = [line for line in caught.value.args if line]
    assert lines[-3:] == ["999", "\ufffd", "the reason"]
    assert len(lines) == OUTPUT_LINES


@pytest.mark.anyio
async def test_a_command_that_a_signal_ends_has_failed(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError):
        await run("import os; os.kill(os.getpid(), 9)", Reported(), tmp_path)


@pytest.mark.anyio
async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match=r"No such file.*/nowhere/uv"):
        await run_command(["/nowhere/uv"], environ={}, cwd=tmp_path, report=Reported())


@pytest.mark.anyio
async def test_a_command_asks_no_questions(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match="EOFError"):
        await run("input()", Reported(), tmp_path)

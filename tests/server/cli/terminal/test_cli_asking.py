import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def keyboard() -> Iterator[tuple[int, int]]:
    """Where somebody types, and the terminal where it arrives."""
    ends = pty.openpty()
    yield ends
    for end in ends:
        os.close(end)


@pytest.fixture
def asking(
    work: Path, monkeypatch: pytest.MonkeyPatch, keyboard: tuple[int, int]
) -> Iterator[subprocess.Popen[str]]:
    """A call at a terminal that has just asked whether it may run."""
    monkeypatch.setenv("TOOLCRIB_POLICY__ASK", '["write_file"]')
    call = ["call", "write_file", "file_path=made", "content=x"]
    process = subprocess.Popen(
        [sys.executable, "-c", "from server.cli import main; main()", *call],
        stdin=keyboard[1],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=work,
        start_new_session=True,
    )
    assert process.stderr is not None
    shown = ""
    while not shown.endswith("Run it? [y/N]: "):
        shown += process.stderr.read(1)
        assert process.poll() is None, shown
    yield process
    process.kill()
    process.communicate()


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("\n", 1), ("\x04", 1)])
def test_a_call_runs_only_if_the_person_says_yes(
    asking: subprocess.Popen[str], keyboard: tuple[int, int], work: Path, typed: str, code: int
) -> None:
    os.write(keyboard[0], typed.encode())
    _, err = asking.communicate(timeout=60)
    assert asking.returncode == code
    assert "Traceback" not in err
    assert (work / "made").exists() is (code == 0)


def test_ctrl_c_at_a_question_ends_the_call_at_once(
    asking: subprocess.Popen[str], work: Path
) -> None:
    asking.send_signal(signal.SIGINT)
    _, err = asking.communicate(timeout=60)
    assert asking.returncode == 130
    assert err.startswith("Stopped.")
    assert err.count("\n") == 1
    assert not (work / "made").exists()

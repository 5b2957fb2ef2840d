"""The command line, on a home directory, a working directory and a data directory of the test."""

import os
import pty
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from server.cli import main

DOCUMENTS = {
    "sailing.md": "# Sailing\n\n## Knots\n\nThe bowline makes a loop that does not slip.\n",
    "bread.md": "# Bread\n\nA sourdough loaf needs flour, water, salt and a lively starter.\n",
    "it's 🍅 [red].txt": "Tomatoes want sun and string.",
}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: object
    out: str
    err: str


Command = Callable[..., Ended]
Started = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with documents in `notes`; the data directory is beside it."""
    for name in [name for name in os.environ if name.startswith("TOOLCRIB_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TOOLCRIB_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("PATH", sysconfig.get_path("scripts") + os.pathsep + os.environ["PATH"])
    monkeypatch.delenv("UV_RUN_RECURSION_DEPTH", raising=False)
    notes = tmp_path / "work" / "notes"
    notes.mkdir(parents=True)
    for name, text in DOCUMENTS.items():
        (notes / name).write_text(text)
    monkeypatch.chdir(notes.parent)
    return notes.parent


@pytest.fixture
def cli(work: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command in this process."""

    def run(*arguments: str) -> Ended:
        monkeypatch.setattr(sys, "argv", ["toolcrib", *arguments])
        with pytest.raises(SystemExit) as caught:
            main()
        return Ended(caught.value.code or 0, *capsys.readouterr())

    return run


@pytest.fixture
def toolcrib(work: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts the installed command in a process group of its own."""

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = Path(sysconfig.get_path("scripts"), "toolcrib")
        return subprocess.Popen(
            [command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return start


@dataclass
class Terminal:
    """A real terminal with a command running in it."""

    process: subprocess.Popen[bytes]
    keyboard: int
    shown: bytes = b""

    @property
    def seen(self) -> str:
        return self.shown.decode(errors="ignore")  # the last character may be there in part

    def expect(self, text: str) -> None:
        """Reads what is shown until a text is."""
        while text not in self.seen:
            assert self.read(), self.seen

    def read(self) -> bool:
        """Reads what is shown next; whether anything is."""
        try:
            more = os.read(self.keyboard, 4096)
        except OSError:  # the other end is closed
            more = b""
        self.shown += more
        return bool(more)

    def type(self, text: str) -> None:
        os.write(self.keyboard, text.encode())


@contextmanager
def terminal(*arguments: str) -> Iterator[Terminal]:
    """A real terminal in which a command runs."""
    keyboard, screen = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", "from server.cli import main; main()", *arguments],
        stdin=screen,
        stdout=screen,
        stderr=screen,
        start_new_session=True,
    )
    os.close(screen)
    try:
        yield Terminal(process, keyboard)
    finally:
        process.kill()
        process.wait()
        os.close(keyboard)

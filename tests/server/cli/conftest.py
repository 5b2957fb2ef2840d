"""The command line, on a home directory, a working directory and a data directory of the test."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
from collections.abc import Callable
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

"""What the tests of files, searches and processes share: a user's directory, and races."""

from __future__ import annotations

import fcntl  # noqa: F401  # nobody may be unable to read what is imported later
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest

NOBODY = 65534


@pytest.fixture(params=["root", "nobody"] if os.geteuid() == 0 else ["ourselves"])
def house(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A directory of the user that the test runs as: root and nobody, or who started the tests."""
    with tempfile.TemporaryDirectory() as name:
        house = Path(os.path.realpath(name))
        house.chmod(0o755)
        if request.param != "nobody":
            yield house
            return
        os.chown(house, NOBODY, NOBODY)
        os.setegid(NOBODY)
        os.seteuid(NOBODY)
        try:
            yield house
        finally:
            os.seteuid(0)
            os.setegid(0)


_ENDLESS = """
import sys
print("swapping", flush=True)
while True:
    globals()[sys.argv[1]](sys.argv[2])
"""


@pytest.fixture
def swapping(
    request: pytest.FixtureRequest,
) -> Callable[[Path, str, str], AbstractContextManager[None]]:
    """Keeps calling a function of the test module's `SWAPS` with a directory."""
    return partial(_swapping, request.module.SWAPS)


@contextmanager
def _swapping(swaps: str, home: Path, swap: str, kind: str) -> Iterator[None]:
    """Keeps swapping, in a thread or in a process of its own."""
    if kind == "process":
        command = [sys.executable, "-c", swaps + _ENDLESS, swap, str(home)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
            assert swapper.stdout is not None
            swapper.stdout.readline()
            try:
                yield
            finally:
                swapper.kill()
        return
    functions: dict[str, Callable[[str], None]] = {}
    exec(swaps, functions)  # noqa: S102  # one text for the thread and for the child process
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            functions[swap](str(home))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()

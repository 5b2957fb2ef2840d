"""What the tests of files, searches and processes share: a user's directory, and races."""

import fcntl  # noqa: F401  # nobody may be unable to read what is imported later
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest


@pytest.fixture
def house() -> Iterator[Path]:
    """A directory that any user may enter."""
    with tempfile.TemporaryDirectory() as name:
        house = Path(os.path.realpath(name))
        house.chmod(0o755)
        yield house


_ENDLESS = """
import sys
print("swapping", flush=True)
while True:
    globals()[sys.argv[1]](sys.argv[2])
"""


@pytest.fixture
def swapping(request: pytest.FixtureRequest) -> Callable[[Path, str], AbstractContextManager[None]]:
    """Keeps calling a function of the test module's `SWAPS` with a directory."""
    return partial(_swapping, request.module.SWAPS)


@contextmanager
def _swapping(swaps: str, home: Path, swap: str) -> Iterator[None]:
    """Keeps swapping in a process of its own."""
    command = [sys.executable, "-c", swaps + _ENDLESS, swap, str(home)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        swapper.stdout.readline()
        try:
            yield
        finally:
            swapper.kill()

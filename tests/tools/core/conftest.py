"""What the tests of several rooms share: a manager of some functions, and races."""

from __future__ import annotations

import fcntl  # noqa: F401  # nobody may be unable to read what is imported later
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from storage.index.embedders.minilm import MiniLMEmbedder
from storage.library import Library
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.manager import SandboxToolManager
from tools.core.registry import ToolRegistry
from tools.sandbox.files.sandbox import Sandbox


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    library = Library(tmp_path / "data", MiniLMEmbedder())
    yield library
    library.close()


@pytest.fixture
def toolbox(tmp_path: Path, library: Library) -> Callable[..., SandboxToolManager]:
    """Makes a manager of some functions, with a real sandbox and a real library."""

    def make(*functions: Callable[..., Any], **options: Any) -> SandboxToolManager:
        registry = ToolRegistry()
        for function in functions:
            registry.add(FunctionToMCP.convert(function))
        return SandboxToolManager(
            registry, sandbox=Sandbox(tmp_path), library=library, permissions=None, **options
        )

    return make


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
def swapping(
    request: pytest.FixtureRequest,
) -> Callable[[Path, str], AbstractContextManager[None]]:
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

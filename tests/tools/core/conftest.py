"""A manager of some functions, with a real sandbox and a real library."""

from __future__ import annotations

import fcntl  # noqa: F401  # nobody may be unable to read what is imported later
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.index.embedders.minilm import MiniLMEmbedder
from storage.library import Library
from tools.core.files.sandbox import Sandbox
from tools.core.function_to_mcp import FunctionToMCP
from tools.core.manager import SandboxToolManager
from tools.core.registry import ToolRegistry


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

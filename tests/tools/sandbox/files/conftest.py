"""The two ways of resolving a path beneath a root."""

from pathlib import Path

import pytest

from tools.sandbox.files.openat import DirectoryOpener, open_beneath, walk_beneath
from tools.sandbox.files.sandbox import Sandbox


@pytest.fixture(params=[open_beneath, walk_beneath], ids=["kernel", "walk"])
def open_directory(request: pytest.FixtureRequest) -> DirectoryOpener:
    """Each in turn; without openat2, the first falls back to the second."""
    opener: DirectoryOpener = request.param
    return opener


@pytest.fixture
def sandbox(root: Path, open_directory: DirectoryOpener) -> Sandbox:
    """The files of the test module's own root."""
    return Sandbox(root, open_directory=open_directory)

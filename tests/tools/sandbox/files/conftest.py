"""The two ways of resolving a path beneath a root."""

from __future__ import annotations

import pytest

from tools.sandbox.files.openat import DirectoryOpener, open_beneath, walk_beneath


@pytest.fixture(params=[open_beneath, walk_beneath], ids=["kernel", "walk"])
def open_directory(request: pytest.FixtureRequest) -> DirectoryOpener:
    """Each in turn; without openat2, the first falls back to the second."""
    opener: DirectoryOpener = request.param
    return opener

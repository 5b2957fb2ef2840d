"""The real server with a function file, whose worker really runs."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from server.app import App
from server.settings.settings import FunctionSettings
from tests.server.serving import running

Garden = Callable[..., AbstractAsyncContextManager[App]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the function files are."""
    folder = tmp_path / "functions"
    folder.mkdir()
    return folder


@pytest.fixture
def served(tmp_path: Path, folder: Path) -> Garden:
    """Serves a folder with one file of some source."""

    @asynccontextmanager
    async def serve(source: str, **options: Any) -> AsyncIterator[App]:
        (folder / "garden.py").write_text(dedent(source))
        functions = FunctionSettings(paths=(folder,))
        async with running(tmp_path, functions=functions, **options) as app:
            yield app

    return serve

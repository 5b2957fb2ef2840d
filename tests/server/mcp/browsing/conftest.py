"""The real server with a function file, whose worker really runs."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from server.app import App, build
from server.settings.settings import FunctionSettings, Settings

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
    (tmp_path / "root").mkdir()

    @asynccontextmanager
    async def serve(source: str, **options: Any) -> AsyncIterator[App]:
        (folder / "garden.py").write_text(dedent(source))
        settings = Settings(
            data_dir=tmp_path / "data",
            root=tmp_path / "root",
            functions=FunctionSettings(paths=(folder,)),
            **options,
        )
        app = build(settings)
        async with app.running():
            yield app

    return serve

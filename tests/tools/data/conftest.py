"""The product, for tools of recipes, with and without Data-Juicer."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from tools.data.running.environment import DataEnvironment


@pytest.fixture
async def crib(open_crib: Callable[[], AbstractAsyncContextManager[Any]]) -> AsyncIterator[Any]:
    """The product and a client of it."""
    async with open_crib() as opened:
        yield opened


@pytest.fixture
def nowhere(tmp_path: Path) -> dict[str, str]:
    """Variables with which uv finds no package."""
    return {"PATH": os.environ["PATH"], "UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "cache")}


@pytest.fixture(scope="module")
async def workshop(
    data_juicer: DataEnvironment,
    tmp_path_factory: pytest.TempPathFactory,
    open_shared: Callable[[], AbstractAsyncContextManager[Any]],
) -> AsyncIterator[Any]:
    """The product with Data-Juicer, once for a module."""
    async with open_shared() as opened:
        link = opened.app.settings.data_dir / "data-juicer"
        link.symlink_to(data_juicer.path)
        yield opened

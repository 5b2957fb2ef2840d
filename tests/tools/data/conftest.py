"""The product, and Data-Juicer as it is really set up, once for all tests that need it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import anyio
import pytest

from tools.data.environment import DataEnvironment, Extent


async def say_nothing(_line: str) -> None:
    await anyio.lowlevel.checkpoint()


@pytest.fixture(scope="session")
def data_juicer(tmp_path_factory: pytest.TempPathFactory) -> DataEnvironment:
    """The environment, which all processes of a test run share."""
    shared = tmp_path_factory.getbasetemp().parent / "shared"
    environment = DataEnvironment(shared, environ=os.environ)
    anyio.run(environment.set_up, Extent.MINIMAL, say_nothing)
    return environment


@pytest.fixture
def nowhere(tmp_path: Path) -> dict[str, str]:
    """Variables with which uv finds no package."""
    return {"PATH": os.environ["PATH"], "UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "cache")}


@pytest.fixture
async def crib(open_crib: Callable[[], AbstractAsyncContextManager[Any]]) -> AsyncIterator[Any]:
    """The product and a client of it."""
    async with open_crib() as opened:
        yield opened

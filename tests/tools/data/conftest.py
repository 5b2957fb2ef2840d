"""Data-Juicer as it is really set up, once for all tests that need it."""

from __future__ import annotations

import os
from pathlib import Path

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

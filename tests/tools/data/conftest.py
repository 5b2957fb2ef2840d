"""The product, for tools of recipes, with and without Data-Juicer."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from storage.keeping.changes.models import ChangeFilter
from tools.data.running.environment import DataEnvironment
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.history.undo import Undo


@pytest.fixture
def nowhere(tmp_path: Path) -> dict[str, str]:
    """Variables with which uv finds no package."""
    return {"PATH": os.environ["PATH"], "UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "cache")}


@pytest.fixture
def undo_last() -> Callable[[Any], None]:
    """Takes back what the last call did to files, as `toolcrib undo` does."""
    return _undo_last


def _undo_last(crib: Any) -> None:
    history = crib.app.history
    own = history.changes.own(crib.app.identity)
    found = own.find(ChangeFilter(root=history.root))
    taking = Undo(own, Sandbox(crib.root))
    taking.take_back(taking.plan([each for each in found if each.by.call == found[0].by.call]))


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

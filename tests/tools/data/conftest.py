"""The product, for tools of recipes that leave nothing behind but files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest


@pytest.fixture
async def crib(open_crib: Callable[[], AbstractAsyncContextManager[Any]]) -> AsyncIterator[Any]:
    """The product and a client of it."""
    async with open_crib() as opened:
        yield opened

"""Imports and building without a search for garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Looks for no garbage among what is imported and built, now or later: all of it stays.

    It is an eighth of the start's CPU time; `python -m benchmarks.startup` measures the whole.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()

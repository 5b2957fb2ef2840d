"""Pauses the garbage collector while the server starts."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def uncollected() -> Iterator[None]:
    """Pauses the garbage collector, and exempts all objects created so far from later runs.

    This saves an eighth of the startup CPU time; see `python -m benchmarks.startup`.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()

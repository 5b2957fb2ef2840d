"""Parts that are made when they are first used: off the event loop, for they load modules."""

from __future__ import annotations

from threading import RLock
from typing import Any

import anyio.to_thread

__all__ = ["first_use"]

_making = RLock()
"""From Python 3.12 on a cached property would be made twice by two who use it first at once."""


async def first_use(owner: object, name: str) -> Any:  # noqa: ANN401  # a part of any type
    """The value of a cached property, made in a thread where it is not there yet.

    Args:
        owner: Whose property it is.
        name: Name of the property.
    """
    if name not in vars(owner):
        await anyio.to_thread.run_sync(_make, owner, name)
    return getattr(owner, name)


def _make(owner: object, name: str) -> None:
    with _making:
        getattr(owner, name)

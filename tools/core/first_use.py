"""Parts that are made when they are first used: off the event loop, for they load modules."""

from __future__ import annotations

from typing import Any

import anyio.to_thread

__all__ = ["first_use"]


async def first_use(owner: object, name: str) -> Any:  # noqa: ANN401  # a part of any type
    """The value of a cached property, made in a thread where it is not there yet.

    Args:
        owner: Whose property it is.
        name: Name of the property.
    """
    if name not in vars(owner):
        await anyio.to_thread.run_sync(getattr, owner, name)
    return getattr(owner, name)

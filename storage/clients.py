"""How storage asks others over HTTP: by clients that whoever builds the product hands down."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

__all__ = ["ClientFactory", "plain_client"]

ClientFactory = Callable[[str], "httpx2.Client"]
"""Makes a client that asks the host and port of a URL; it follows no redirects."""


def plain_client(_url: str) -> httpx2.Client:
    """A client that nothing of the environment leads elsewhere."""
    import httpx2

    return httpx2.Client(trust_env=False)

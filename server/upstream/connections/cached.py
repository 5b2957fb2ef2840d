"""Cached listings: what servers offered last, for the time in which they cannot be asked."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Protocol

import anyio.to_thread
from pydantic import ValidationError

from server.settings.gateway import ServerSettings
from server.upstream.connections.listing import Listing
from storage.errors import StorageError

_logger = logging.getLogger("toolcrib")


class Kept(Protocol):
    """One listing as the record has it."""

    @property
    def offered(self) -> Mapping[str, Any]:
        """What was offered, as JSON."""


class Stored(Protocol):
    """Where the listings are kept; its methods block."""

    def get(self, server: str, fingerprint: str, /) -> Kept | None:
        """What a server offered under those settings."""

    def put(self, server: str, fingerprint: str, offered: Mapping[str, Any], /) -> None:
        """Keeps what a server offers."""


class Cached:
    """Keeps listings in the record, off the event loop; a record that fails is only logged.

    Args:
        stored: Where they are kept.
    """

    def __init__(self, stored: Stored) -> None:
        self._stored = stored

    async def get(self, server: str, settings: ServerSettings) -> Listing | None:
        """What a server offered when it was last asked."""
        return await anyio.to_thread.run_sync(self._get, server, fingerprint(settings))

    async def put(self, server: str, settings: ServerSettings, listing: Listing) -> None:
        """Keeps what a server offers."""
        await anyio.to_thread.run_sync(self._put, server, fingerprint(settings), listing)

    def _get(self, server: str, key: str) -> Listing | None:
        try:
            kept = self._stored.get(server, key)
            return None if kept is None else Listing.model_validate(kept.offered)
        except (StorageError, ValidationError) as error:
            _logger.warning("The last listing of %r cannot be read: %s", server, error)
            return None

    def _put(self, server: str, key: str, listing: Listing) -> None:
        try:
            offered = listing.model_dump(mode="json", by_alias=True, exclude_unset=True)
            self._stored.put(server, key, offered)
        except StorageError as error:
            _logger.warning("The listing of %r cannot be kept: %s", server, error)


def fingerprint(settings: ServerSettings) -> str:
    """What tells whether a server is still the one that was asked; no secret is in it."""
    told = [
        settings.command,
        settings.args,
        str(settings.cwd or ""),
        settings.url,
        sorted(settings.env),
        sorted(settings.headers),
    ]
    return sha256(json.dumps(told).encode()).hexdigest()

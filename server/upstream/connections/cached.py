"""Cached listings: the last offers of servers, used while they cannot be asked."""

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
    """A listing in the record."""

    @property
    def offered(self) -> Mapping[str, Any]:
        """The listing as JSON."""


class Stored(Protocol):
    """The store of listings; its methods block."""

    def get(self, server: str, fingerprint: str, /) -> Kept | None:
        """Returns a server's listing under these settings."""

    def put(self, server: str, fingerprint: str, offered: Mapping[str, Any], /) -> None:
        """Stores a server's listing."""


class Cached:
    """Stores listings in the record, off the event loop; failures of the record are only logged.

    Args:
        stored: The store.
    """

    def __init__(self, stored: Stored) -> None:
        self._stored = stored

    async def get(self, server: str, settings: ServerSettings) -> Listing | None:
        """Returns a server's last listing."""
        return await anyio.to_thread.run_sync(self._get, server, fingerprint(settings))

    async def put(self, server: str, settings: ServerSettings, listing: Listing) -> None:
        """Stores a server's listing."""
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
            _logger.warning("The listing of %r cannot be stored: %s", server, error)


def fingerprint(settings: ServerSettings) -> str:
    """Returns a hash that identifies a server by its settings, without secrets."""
    told = [
        settings.command,
        settings.args,
        str(settings.cwd or ""),
        settings.url,
        sorted(settings.env),
        sorted(settings.headers),
    ]
    return sha256(json.dumps(told).encode()).hexdigest()

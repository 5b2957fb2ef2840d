"""Listings: what each upstream server offered when it was last asked."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from storage.database import Database


@dataclass(frozen=True, slots=True)
class Listing:
    """What one server offered.

    Attributes:
        server: Its name in the settings.
        offered: Its tools, resources, templates, prompts and instructions, as JSON has them.
        listed_at: When it was asked; Unix seconds.
    """

    server: str
    offered: Mapping[str, Any]
    listed_at: float


class Listings:
    """Keeps the last listing of each server, for the time in which it cannot be asked.

    Args:
        database: The record.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, server: str, fingerprint: str) -> Listing | None:
        """What a server offered when it was last asked; None if it never was.

        Args:
            server: Its name.
            fingerprint: Of its settings: under others it is another server.
        """
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT listing, listed_at FROM upstream_listings"
                " WHERE server = ? AND fingerprint = ?",
                (server, fingerprint),
            ).fetchone()
        if row is None:
            return None
        return Listing(server, json.loads(row["listing"]), row["listed_at"])

    def put(self, server: str, fingerprint: str, offered: Mapping[str, Any]) -> None:
        """Keeps what a server offers now, in the place of its earlier listing.

        Raises:
            StorageUnavailableError: If the record cannot be written; the earlier listing stays.
        """
        with self._database.write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO upstream_listings (server, fingerprint, listing, listed_at)"
                " VALUES (?, ?, ?, ?)",
                (server, fingerprint, json.dumps(offered), time.time()),
            )

    def keep(self, servers: Collection[str]) -> None:
        """Drops the listings of all other servers, which the settings name no more."""
        with self._database.write() as connection:
            connection.execute(
                "DELETE FROM upstream_listings"
                " WHERE server NOT IN (SELECT value FROM json_each(?))",
                (json.dumps(sorted(servers)),),
            )

"""Gathers the stores of the tool catalogue."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from storage.catalog.created_tools import CreatedToolStore
from storage.catalog.pins import Pins
from storage.catalog.portions import in_portions
from storage.catalog.records import Records
from storage.catalog.uses import Uses
from storage.database import Database
from storage.errors import StorageUnavailableError

KEPT_DAYS = 60  # days after which an unused analysis is deleted
# Days after which the last use of an analysis is updated, so that reads rarely write.
MARKED_DAYS = 7
DAY = 86_400


class Analyses:
    """Cached values, keyed by the hash of their input; a missing one can be computed again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tidied = 0  # the day; changed only inside a write transaction

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Returns the values under these keys; 45,000 of them take 0.2 s."""
        found: dict[bytes, bytes] = {}
        stale: list[bytes] = []
        before = _today() - MARKED_DAYS
        with self._database.read() as connection:
            for some in in_portions(keys):
                rows = connection.execute(
                    "SELECT key, value, used FROM tool_analyses"
                    f" WHERE key IN ({', '.join('?' * len(some))})",
                    some,
                )
                for key, value, used in rows:
                    found[key] = value
                    if used <= before:
                        stale.append(key)
        with suppress(StorageUnavailableError):  # a full disk must not prevent reads
            self._mark(stale)
        return found

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Stores values in one transaction, replacing those under the same keys.

        Once a day it also deletes what was unused for `KEPT_DAYS`.
        """
        today = _today()
        with self._database.write() as connection:
            connection.executemany(
                "INSERT OR REPLACE INTO tool_analyses (key, value, used) VALUES (?, ?, ?)",
                ((key, value, today) for key, value in values.items()),
            )
            if self._tidied != today:
                connection.execute("DELETE FROM tool_analyses WHERE used < ?", (today - KEPT_DAYS,))
                self._tidied = today

    def _mark(self, keys: Sequence[bytes]) -> None:
        today = _today()
        for some in in_portions(keys):
            with self._database.write() as connection:
                connection.executemany(
                    "UPDATE tool_analyses SET used = ? WHERE key = ?",
                    ((today, key) for key in some),
                )


def _today() -> int:
    return int(time.time() // DAY)


@dataclass(frozen=True, slots=True)
class Listing:
    """The listing of one server."""

    server: str  # its name in the settings
    # Its tools, resources, templates, prompts and instructions, as JSON values.
    offered: Mapping[str, Any]
    listed_at: float  # Unix seconds when it was listed


class Listings:
    """Stores the last listing of each server, for use while the server is unreachable."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, server: str, fingerprint: str) -> Listing | None:
        """Returns the last listing of a server; None if it was never listed with these settings.

        Other settings, which `fingerprint` hashes, make it another server.
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
        """Stores a server's current listing, replacing the earlier one."""
        with self._database.write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO upstream_listings (server, fingerprint, listing, listed_at)"
                " VALUES (?, ?, ?, ?)",
                (server, fingerprint, json.dumps(offered), time.time()),
            )

    def keep(self, servers: Collection[str]) -> None:
        """Deletes the listings of servers that are no longer in the settings."""
        with self._database.write() as connection:
            connection.execute(
                "DELETE FROM upstream_listings"
                " WHERE server NOT IN (SELECT value FROM json_each(?))",
                (json.dumps(sorted(servers)),),
            )


class Catalog:
    """All stores about tools."""

    def __init__(self, database: Database) -> None:
        self.analyses = Analyses(database)
        self.created = CreatedToolStore(database)
        self.records = Records(database)
        self.listings = Listings(database)
        self.uses = Uses(database)
        self.pins = Pins(database)

"""The catalogue's part of the record, put together."""

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

KEPT_DAYS = 60
"""Days after which an analysis that nobody needed is dropped."""

MARKED_DAYS = 7
"""Days after which it is noted again that an analysis was needed: a read rarely writes."""

DAY = 86_400


class Analyses:
    """Values by the hash of what they were made from; whatever is missing can be made again.

    Args:
        database: The record.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._tidied = 0  # the day; changed in this process's turn to write

    def get(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """What is kept under these keys; 45,000 of them take 0.2 s."""
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
        with suppress(StorageUnavailableError):  # what can be read is of use on a full disk too
            self._mark(stale)
        return found

    def put(self, values: Mapping[bytes, bytes]) -> None:
        """Keeps values, all or none, in the place of those that have their keys.

        Once a day it also drops what nobody needed for `KEPT_DAYS`.
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
        """Keeps what a server offers now, in the place of its earlier listing."""
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


class Catalog:
    """What is kept about tools.

    Args:
        database: The record.

    Attributes:
        analyses: What was made of the tools' texts.
        created: The tools that agents have written.
        records: The tools that files describe.
        listings: What upstream servers offered.
        uses: Which tool served which question.
        pins: The definitions of upstream tools that were accepted.
    """

    def __init__(self, database: Database) -> None:
        self.analyses = Analyses(database)
        self.created = CreatedToolStore(database)
        self.records = Records(database)
        self.listings = Listings(database)
        self.uses = Uses(database)
        self.pins = Pins(database)

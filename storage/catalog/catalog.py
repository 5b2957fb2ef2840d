"""The stores of the tool catalogue: uses, pins, records of files, analyses, listings of servers."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.catalog.created_tools import CreatedToolStore
from storage.catalog.transactions import Counter, batches, write_many
from storage.database import Database, exactly, identity_clause
from storage.errors import StorageUnavailableError
from storage.models import Identity

MOST_KEPT = 500  # maximum uses stored per identity; the oldest are deleted first


class _Store:
    def __init__(self, database: Database) -> None:
        self._database = database


@dataclass(frozen=True, slots=True)
class Use:
    """A tool that answered a query."""

    query: str
    tool_id: str
    count: int  # how often it did


class Uses(_Store):
    """Stores the uses of each identity separately."""

    def add(self, identity: Identity, query: str, tool_id: str) -> None:
        """Stores one use and deletes the oldest beyond the limit."""
        own = exactly(identity, "u")
        with self._database.write() as connection:
            connection.execute(
                "INSERT INTO tool_uses VALUES (?, ?, ?, ?, ?, 1, ?) ON CONFLICT"
                " DO UPDATE SET count = count + 1, last_used = excluded.last_used",
                (*own.values, query, tool_id, time.time()),
            )
            connection.execute(
                f"DELETE FROM tool_uses AS u WHERE {own.sql} AND (query, tool_id) IN"
                f" (SELECT query, tool_id FROM tool_uses u WHERE {own.sql}"
                " ORDER BY last_used DESC, query, tool_id LIMIT -1 OFFSET ?)",
                (*own.values, *own.values, MOST_KEPT),
            )

    def listed(self, identity: Identity) -> list[Use]:
        """Returns the uses of an identity, latest last; an empty device or agent matches any."""
        owner = identity_clause(identity, "u")
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT query, tool_id, sum(count) AS count FROM tool_uses u"
                f" WHERE {owner.sql} GROUP BY query, tool_id"
                " ORDER BY max(last_used), query, tool_id",
                owner.values,
            ).fetchall()
        return [Use(*row) for row in rows]

    def forget(self, identity: Identity) -> int:
        """Deletes the uses of an identity and returns how many."""
        owner = identity_clause(identity, "u")
        with self._database.write() as connection:
            return connection.execute(
                f"DELETE FROM tool_uses AS u WHERE {owner.sql}", owner.values
            ).rowcount


@dataclass(frozen=True, slots=True)
class Pin:
    """An accepted tool definition."""

    server: str  # the server's name in the settings
    tool: str  # the tool's name on the server
    sha256: str  # hexadecimal hash of the definition
    approved: bool  # whether a user reviewed it; otherwise it was trusted on first use
    pinned_at: float  # Unix seconds when it was accepted


class Pins:
    """Stores one pin per tool; pins outlive their server's entry in the settings."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.approvals = Counter(database, "tool_pins_approvals")  # a new one may end a quarantine

    def of(self, server: str) -> dict[str, Pin]:
        """Returns the pins of a server's tools, by tool name."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT server, tool, sha256, approved, pinned_at FROM tool_pins WHERE server = ?",
                (server,),
            ).fetchall()
        return {
            tool: Pin(of, tool, sha256, bool(approved), pinned_at)
            for of, tool, sha256, approved, pinned_at in rows
        }

    def definition(self, server: str, tool: str) -> Mapping[str, Any] | None:
        """Returns the accepted definition; None if there is none."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT definition FROM tool_pins WHERE server = ? AND tool = ?", (server, tool)
            ).fetchone()
        if row is None:
            return None
        definition: Mapping[str, Any] = json.loads(row["definition"])
        return definition

    def trust(self, server: str, definitions: Mapping[str, tuple[str, str]]) -> dict[str, Pin]:
        """Pins the definitions (hash and JSON) of tools without a pin; returns all their pins."""
        now = time.time()
        write_many(
            self._database,
            "INSERT OR IGNORE INTO tool_pins"  # a pin set by another process stays
            " (server, tool, sha256, definition, approved, pinned_at) VALUES (?, ?, ?, ?, 0, ?)",
            [(server, tool, *definition, now) for tool, definition in definitions.items()],
        )
        return {tool: pin for tool, pin in self.of(server).items() if tool in definitions}

    def approve(self, server: str, tool: str, sha256: str, definition: str) -> None:
        """Pins the definition that a user accepted, replacing an earlier one."""
        with self._database.write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO tool_pins"
                " (server, tool, sha256, definition, approved, pinned_at)"
                " VALUES (?, ?, ?, ?, 1, ?)",
                (server, tool, sha256, definition, time.time()),
            )
            self.approvals.count_up(connection)


@dataclass(frozen=True, slots=True)
class Record:
    """A file's description of a tool."""

    tool_id: str  # identifies it
    file: Path  # the absolute path of the file
    fields: Mapping[str, Any]  # its content, including the `tool_id`


class Records:
    """Stores what the files of some directories describe, until they are read again."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.changes = Counter(database, "tool_records_changes")

    def replace(self, directory: Path, records: Sequence[Record]) -> int:
        """Replaces all records that came from a directory; returns how many were only dropped.

        The directory is absolute, without symlinks. A tool_id that another directory's file also
        has moves to this one. Of two records with the same tool_id, the last wins.
        """
        beneath = os.path.join(directory, "")  # noqa: PTH118  # a Path drops the last separator
        rows = {
            each.tool_id: (each.tool_id, str(each.file), json.dumps(each.fields, sort_keys=True))
            for each in records
        }
        with self._database.write() as connection:
            stored = connection.execute(
                "SELECT tool_id, file, record FROM tool_records WHERE substr(file, 1, ?) = ?",
                (len(beneath), beneath),
            )
            before = {row["tool_id"]: tuple(row) for row in stored}
            gone = before.keys() - rows.keys()
            changed = [row for key, row in rows.items() if before.get(key) != row]
            connection.executemany(
                "DELETE FROM tool_records WHERE tool_id = ?", ((each,) for each in gone)
            )
            connection.executemany(
                "INSERT OR REPLACE INTO tool_records (tool_id, file, record) VALUES (?, ?, ?)",
                changed,
            )
            if gone or changed:
                self.changes.count_up(connection)
        return len(gone)

    def listed(self) -> list[Record]:
        """Returns all records, ordered by tool_id."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT tool_id, file, record FROM tool_records ORDER BY tool_id"
            ).fetchall()
        return [
            Record(row["tool_id"], Path(row["file"]), json.loads(row["record"])) for row in rows
        ]


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
            for some in batches(keys):
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
            write_many(
                self._database,
                "UPDATE tool_analyses SET used = ? WHERE key = ?",
                [(_today(), key) for key in stale],
            )
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


def _today() -> int:
    return int(time.time() // DAY)


@dataclass(frozen=True, slots=True)
class Listing:
    """The listing of one server."""

    server: str  # its name in the settings
    # Its tools, resources, templates, prompts and instructions, as JSON values.
    offered: Mapping[str, Any]
    listed_at: float  # Unix seconds when it was listed


class Listings(_Store):
    """Stores the last listing of each server, for use while the server is unreachable."""

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

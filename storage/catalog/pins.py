"""Pins: the accepted definition of each upstream tool."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from storage.catalog.counter import Counter
from storage.catalog.portions import in_portions
from storage.database import Database


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
        self._approvals = Counter(database, "tool_pins_approvals")

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
        """Pins the definitions of tools without a pin; a pin set by another process stays.

        Returns:
            The current pins of these tools.
        """
        now = time.time()
        for some in in_portions(list(definitions)):
            with self._database.write() as connection:
                connection.executemany(
                    "INSERT OR IGNORE INTO tool_pins"
                    " (server, tool, sha256, definition, approved, pinned_at)"
                    " VALUES (?, ?, ?, ?, 0, ?)",
                    ((server, tool, *definitions[tool], now) for tool in some),
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
            self._approvals.count_up(connection)

    def approvals(self) -> int:
        """Returns the number of approvals by any process; a new one may end a quarantine."""
        return self._approvals.value()

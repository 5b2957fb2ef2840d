"""Pins: the definition of each upstream tool that was accepted."""

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
    """One definition that was accepted.

    Attributes:
        server: Name of the tool's server in the settings.
        tool: What the server calls it.
        sha256: Hexadecimal hash of the definition.
        approved: Whether a person looked at it; else it was trusted because it was the first.
        pinned_at: When it was accepted; Unix seconds.
    """

    server: str
    tool: str
    sha256: str
    approved: bool
    pinned_at: float


class Pins:
    """Keeps one pin a tool; they outlive the server's place in the settings.

    Args:
        database: The record.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._approvals = Counter(database, "tool_pins_approvals")

    def of(self, server: str) -> dict[str, Pin]:
        """The pins of a server's tools, by what it calls them."""
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
        """The definition that was accepted; None if none was."""
        with self._database.read() as connection:
            row = connection.execute(
                "SELECT definition FROM tool_pins WHERE server = ? AND tool = ?", (server, tool)
            ).fetchone()
        if row is None:
            return None
        definition: Mapping[str, Any] = json.loads(row["definition"])
        return definition

    def trust(self, server: str, definitions: Mapping[str, tuple[str, str]]) -> dict[str, Pin]:
        """Pins definitions of tools that have no pin; one that another process made stays.

        Args:
            server: Whose tools they are.
            definitions: The hash and the JSON of each definition, by the tool.

        Returns:
            The pins that these tools have now.
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
        """Pins the definition that a person accepted, in the place of an earlier one.

        Args:
            server: Whose tool it is.
            tool: What the server calls it.
            sha256: Hexadecimal hash of the definition.
            definition: Its JSON.
        """
        with self._database.write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO tool_pins"
                " (server, tool, sha256, definition, approved, pinned_at)"
                " VALUES (?, ?, ?, ?, 1, ?)",
                (server, tool, sha256, definition, time.time()),
            )
            self._approvals.count_up(connection)

    def approvals(self) -> int:
        """How many approvals there were, in any process: what is in quarantine may be free."""
        return self._approvals.value()

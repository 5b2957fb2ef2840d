"""Records of tools that files describe."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.catalog.counter import Counter
from storage.database import Database


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
        self._changes = Counter(database, "tool_records_changes")

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
                self._changes.count_up(connection)
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

    def changes(self) -> int:
        """Returns the number of changes by any process; after one, derived data is stale."""
        return self._changes.value()

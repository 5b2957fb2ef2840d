"""Records: the tools that files describe."""

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
    """What a file says of one tool.

    Attributes:
        tool_id: What tells it from all others.
        file: Where it says so; an absolute path.
        fields: What it says, the `tool_id` among it.
    """

    tool_id: str
    file: Path
    fields: Mapping[str, Any]


class Records:
    """Keeps what the files of some directories say, until they are looked at again.

    Args:
        database: The record.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changes = Counter(database, "tool_records_changes")

    def replace(self, directory: Path, records: Sequence[Record]) -> int:
        """Puts these records in the place of all that came from beneath a directory.

        A tool_id that another directory's file has too is this one's from now on; of two records
        with the same one, the last counts.

        Args:
            directory: An absolute path, without links.
            records: What its files say now.

        Returns:
            How many records of files that are gone, or say less than before, were dropped.
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
        """All records, by their tool_ids."""
        with self._database.read() as connection:
            rows = connection.execute(
                "SELECT tool_id, file, record FROM tool_records ORDER BY tool_id"
            ).fetchall()
        return [
            Record(row["tool_id"], Path(row["file"]), json.loads(row["record"])) for row in rows
        ]

    def changes(self) -> int:
        """How often the records were changed, by any process: what was made of them may be old."""
        return self._changes.value()

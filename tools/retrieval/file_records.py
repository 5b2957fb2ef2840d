"""The tools that files describe: they can be found, and not called."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from storage.errors import StorageError

if TYPE_CHECKING:  # loaded on first use
    from storage.catalog.records import Records
    from storage.library import Library
    from tools.core.toolset import ToolSet
    from tools.retrieval.models import ToolRecord

__all__ = ["FROM_FILE", "FileRecords", "admits_record"]

FROM_FILE = "file:"
"""What the id of such a record begins with; no tool that can be called has a colon in its name."""

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class _Described:
    """A record as a tool set judges it."""

    name: str
    aliases: tuple[str, ...]
    tags: tuple[str, ...]
    source: str = "file"
    bare: str = ""


class FileRecords:
    """The records that `toolcrib index` keeps, by their ids, as any process has left them.

    Safe to share between threads.

    Args:
        library: Where they are kept; None keeps none.
    """

    def __init__(self, library: Library | None) -> None:
        self._library = library
        self._records: Mapping[str, ToolRecord] = {}
        self._changes = 0
        self._reading = threading.Lock()

    def current(self) -> Mapping[str, ToolRecord]:
        """All of them; the same object until one is changed. Blocks.

        Where the record cannot be read they are what they were, and the log says so.
        """
        if self._library is None:
            return self._records
        with self._reading:
            try:
                records = self._library.catalog.records
                changes = records.changes()
                if changes != self._changes:
                    self._records = dict(_read(records))
                    self._changes = changes
            except StorageError as error:
                _logger.warning("The tools that files describe cannot be read: %s", error)
            return self._records

    def named(self, name: str) -> ToolRecord | None:
        """The record of that tool_id, or else of that name; blocks."""
        records = self.current()
        found = records.get(FROM_FILE + name)
        return found or next((each for each in records.values() if each.name == name), None)


def admits_record(tool_set: ToolSet, record: ToolRecord) -> bool:
    """Whether a set has a tool that only a file describes."""
    return tool_set.admits(_Described(record.name, record.aliases, record.tags))


def _read(records: Records) -> Iterator[tuple[str, ToolRecord]]:
    from tools.retrieval.models import ToolRecord

    for stored in records.listed():
        try:
            record = ToolRecord.model_validate(stored.fields)
        except ValueError as error:  # another version kept it
            _logger.warning("A tool that %s describes is left out: %s", stored.file, error)
            continue
        tool_id = FROM_FILE + record.tool_id
        aliases = tuple(
            dict.fromkeys(each for each in (*record.aliases, record.tool_id) if each != record.name)
        )
        yield tool_id, record.model_copy(update={"tool_id": tool_id, "aliases": aliases})

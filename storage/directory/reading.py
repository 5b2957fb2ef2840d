"""Records from files: JSON, JSON lines and CSV, read by a directory's mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from storage.directory.models import Directory, Record

__all__ = ["Skipped", "read_records"]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record of a file that is none.

    Attributes:
        number: Its place in the file, from 1.
        reason: What it lacks.
    """

    number: int
    reason: str


def read_records(
    source: Path | bytes,
    directory: Directory,
    *,
    on_skipped: Callable[[Skipped], None] | None = None,
) -> Iterator[Record]:
    """The records of a file.

    Args:
        source: A file, or what is in it.
        directory: Which fields mean what.
        on_skipped: Told of each record that has no name.

    Raises:
        InvalidSourceError: If the file or a record cannot be read; it names the record's number,
            the field and the value.
        OSError: If the file cannot be opened.
    """
    raise NotImplementedError

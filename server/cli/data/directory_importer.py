"""Imports records from files into a directory of people or things."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from server.cli.terminal.progress import counter
from server.cli.terminal.screen import print_line
from storage.directory.models import Added, Directory, Record
from storage.directory.reading import Skipped, read_records
from storage.errors import InvalidSourceError
from storage.library import Shelf
from tools.answers.directory import counted
from tools.core.errors import InvalidArgumentsError, NotFoundError

SAMPLE = Path(__file__).parents[2] / "samples" / "made_up_researchers.json"
"""Made-up researchers, for trying out the directory."""

MOST_SAID = 10
"""Skipped records reported by name; the rest are counted."""


@dataclass(slots=True)
class RecordTally:
    """The outcome of an import of records."""

    directory: Directory
    stored: Added | None = None  # counts of results; None until something is written
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def counts(self) -> dict[str, int]:
        """Counts per result."""
        stored = self.stored or Added()
        return {
            "added": stored.added,
            "replaced": stored.replaced,
            "unchanged": stored.unchanged,
            "deleted": stored.removed,
            "skipped": self.skipped.total(),
        }

    def lines(self) -> Iterator[str]:
        """Yields the counts for display; nothing if nothing was written."""
        if self.stored is None:
            return
        told = [f"{count:,} {result}" for result, count in self.counts.items() if count]
        noun = counted(2, self.directory.noun).removeprefix("2 ")
        yield f"{noun.capitalize()}: {', '.join(told) or 'none'}"
        for reason, count in self.skipped.most_common():
            yield f"  {count:,} skipped: {reason}"
        if self.stored.merged:
            named = ", ".join(self.stored.merged[:MOST_SAID])
            more = len(self.stored.merged) - MOST_SAID
            yield f"Merged, as they have the same key: {named}{f' and {more} more' * (more > 0)}"

    def as_json(self) -> dict[str, Any]:
        """Returns the counts as JSON."""
        return {
            "directory": self.directory.name,
            **self.counts,
            "skipped_because": dict(self.skipped.most_common()),
            "merged": list(self.stored.merged) if self.stored else [],
        }


class DirectoryImporter:
    """Imports the records of files into a directory."""

    def __init__(self, shelf: Shelf, tally: RecordTally, console: Console) -> None:
        self._shelf = shelf
        self._tally = tally
        self._directory = tally.directory
        self._console = console

    def read(self, files: list[Path]) -> list[Record]:
        """Reads the records of all files, each to its end: an invalid one changes nothing."""
        records = [record for file in files for record in self._records(file)]
        if not records:  # pruning with an empty file would delete everything
            names = ", ".join(repr(str(file)) for file in files)
            raise NotFoundError(
                f"No records in {names}; nothing was changed.",
                next_actions=[f"Each record needs a {self._directory.name_field!r}."],
            )
        return records

    def store(self, records: list[Record], progress: Progress, *, prune: bool = False) -> None:
        """Stores records; with `prune`, removes stored ones that are not among them."""
        self._tally.stored = self._shelf.directories.add(
            self._directory, records, prune=prune, on_progress=counter(progress, "Importing")
        )

    def _records(self, file: Path) -> Iterator[Record]:
        def skip(skipped: Skipped) -> None:
            self._tally.skipped[skipped.reason] += 1
            if self._tally.skipped.total() <= MOST_SAID:
                place = f"record {skipped.number} of {file.name}"
                print_line(self._console, f"Skipped: {place}. {skipped.reason}")

        try:
            yield from read_records(file, self._directory, on_skipped=skip)
        except InvalidSourceError as error:
            about = "" if error.message.startswith(str(file)) else f"{file}: "
            raise InvalidArgumentsError(
                f"{about}{error.message}",
                suggestions=error.candidates,
                next_actions=error.suggestions,
            ) from error
        except OSError as error:
            raise InvalidArgumentsError(
                f"{str(file)!r} cannot be read: {error.strerror}.",
                next_actions=["Name a JSON, JSONL or CSV file."],
            ) from error

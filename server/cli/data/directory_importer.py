"""Importing records: files into a directory of people or things."""

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
from storage.directory.models import Directory, Record
from storage.directory.reading import Skipped, read_records
from storage.directory.results import Added
from storage.errors import InvalidSourceError
from storage.library import Shelf
from tools.answers.directory import counted
from tools.core.errors import InvalidArgumentsError, NotFoundError

SAMPLE = Path(__file__).parents[2] / "samples" / "made_up_researchers.json"
"""Made-up researchers, to try the directory with."""

MOST_SAID = 10
"""Skipped records that are named; the rest are counted."""


@dataclass(slots=True)
class RecordTally:
    """What became of the records of an import.

    Attributes:
        directory: Where they went.
        stored: How often each result was; None as long as nothing was written.
        skipped: How often each reason for skipping was.
    """

    directory: Directory
    stored: Added | None = None
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def counts(self) -> dict[str, int]:
        """How often each result was."""
        stored = self.stored or Added()
        return {
            "added": stored.added,
            "replaced": stored.replaced,
            "unchanged": stored.unchanged,
            "deleted": stored.removed,
            "skipped": self.skipped.total(),
        }

    def lines(self) -> Iterator[str]:
        """The counts for a person; none if nothing was written."""
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
        """The counts for a program."""
        return {
            "directory": self.directory.name,
            **self.counts,
            "skipped_because": dict(self.skipped.most_common()),
            "merged": list(self.stored.merged) if self.stored else [],
        }


class DirectoryImporter:
    """Brings the records of files into a directory.

    Args:
        shelf: Whose directory it is.
        tally: Counts what became of the records.
        console: Told of each record that is skipped.
    """

    def __init__(self, shelf: Shelf, tally: RecordTally, console: Console) -> None:
        self._shelf = shelf
        self._tally = tally
        self._directory = tally.directory
        self._console = console

    def read(self, files: list[Path]) -> list[Record]:
        """The records of all files, each read to its end: a wrong one changes nothing.

        Raises:
            NotFoundError: If there is no record in them.
        """
        records = [record for file in files for record in self._records(file)]
        if not records:  # pruning by an empty file would remove everything
            names = ", ".join(repr(str(file)) for file in files)
            raise NotFoundError(
                f"There are no records in {names}; nothing is changed.",
                next_actions=[f"Each record needs a {self._directory.name_field!r}."],
            )
        return records

    def store(self, records: list[Record], progress: Progress, *, prune: bool = False) -> None:
        """Stores records, and with `prune` removes those that are stored and not among them."""
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

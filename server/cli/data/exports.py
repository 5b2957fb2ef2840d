"""Imports files that `toolcrib export` wrote."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.data.tally import Outcome
from server.cli.terminal.progress import counter
from server.cli.terminal.screen import print_line
from storage.errors import UnreadableDocumentError
from storage.keeping import records
from storage.keeping.importing import import_jsonl

if TYPE_CHECKING:
    from rich.progress import Progress

    from server.app import App


def is_export(file: Path) -> bool:
    """Returns whether `toolcrib export` wrote this file."""
    try:
        return file.is_file() and records.is_export(file)
    except OSError:
        return False  # importing it as a document reports why


def take_export(
    app: App, file: Path, note: Callable[[Outcome], None], progress: Progress, *, as_me: bool
) -> None:
    """Stores the content of an export.

    Args:
        app: The app.
        file: The export.
        note: Receives the outcome of each record, or why none was stored.
        progress: Shows the progress.
        as_me: Whether to store everything as the caller's, regardless of the exported owner.
    """
    identity = app.identity if as_me else None
    try:
        imported = import_jsonl(
            app.library.database, file, identity, counter(progress, "Storing records")
        )
    except UnreadableDocumentError as error:
        note(Outcome(file, str(file), "skipped", error.message))
        return
    except OSError as error:
        message = f"{str(file)!r} cannot be read. {error.strerror}."
        note(Outcome(file, str(file), "skipped", message))
        return
    for result, count in imported.outcomes.items():
        for _ in range(count):
            note(Outcome(file, str(file), result))
    others = {each.user_id for each in imported.identities} - {app.identity.user_id}
    if others:
        names = ", ".join(map(repr, sorted(others)))
        yours = f"you are {app.identity.user_id!r}: with --as-me it is stored as yours."
        print_line(progress.console, f"Stored as what it was, of {names}; {yours}")

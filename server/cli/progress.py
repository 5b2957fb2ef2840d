"""How long work looks on a terminal."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed

from storage.library import Library, Shelf

__all__ = ["columns", "console", "embed_all"]

WAIT_SECONDS = 0.2
"""How often to look when another process does the embedding."""


def console() -> Console:
    """Where progress is shown: stderr, so that a command's output can be piped."""
    return Console(stderr=True)


def columns() -> tuple[ProgressColumn, ...]:
    """A bar with its count and its time."""
    return (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        Elapsed(),
    )


def embed_all(library: Library, shelf: Shelf, progress: Progress) -> None:
    """Embeds whatever waits, or waits for the process that does.

    Raises:
        StorageError: If the embedder, the vector index or the disk fails.
    """
    status = shelf.index_status()
    task = progress.add_task("Embedding", total=status.total, completed=status.embedded)
    while True:
        worked = library.indexer.step()
        status = shelf.index_status()
        progress.update(task, total=status.total, completed=status.embedded)
        if not worked:
            if status.complete:
                return
            time.sleep(WAIT_SECONDS)

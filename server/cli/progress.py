"""How long work looks on a terminal."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.table import Column

from storage.errors import VectorIndexError
from storage.library import Library
from storage.shelf import Shelf

__all__ = ["bars", "embed_all", "work"]

WAIT_SECONDS = 0.2
"""How often to look when another process does the embedding."""

ELSEWHERE = "another process does it"


def bars(console: Console) -> Progress:
    """Bars with a count, a time and, in the field `detail`, what is under way."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        Elapsed(),
        TextColumn(
            "{task.fields[detail]}",
            markup=False,
            style="dim",
            table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
        ),
        console=console,
        expand=True,
    )


def embed_all(library: Library, shelf: Shelf, progress: Progress) -> None:
    """Embeds whatever waits, or waits for the process that does.

    Raises:
        StorageError: If the embedder, the vector index or the disk fails.
    """
    status = shelf.index_status()
    task = progress.add_task(
        "Embedding", total=status.total, completed=status.embedded, detail="", visible=False
    )
    while True:
        progress.update(task, visible=not status.complete or progress.tasks[task].visible)
        worked = work(library)
        status = shelf.index_status()
        if not worked and status.complete:
            progress.update(task, total=status.total, completed=status.embedded, detail="")
            return
        progress.update(
            task,
            total=status.total,
            completed=status.embedded,
            detail="" if worked else ELSEWHERE,
        )
        if not worked:
            time.sleep(WAIT_SECONDS)


def work(library: Library) -> bool:
    """Does one batch of indexing; False when there is none or another process is at it.

    Raises:
        StorageError: If the embedder, the vector index or the disk fails.
    """
    try:
        return library.indexer.step()
    except VectorIndexError:  # a damaged index was dropped, and is filled again from the record
        return library.indexer.step()

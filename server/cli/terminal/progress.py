"""How long work looks on a terminal."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.table import Column

from storage.errors import VectorIndexError
from storage.index.indexer import Backlog, read_backlog
from storage.library import Library, Shelf

__all__ = ["bars", "counter", "drain", "embed_all", "work"]

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


def counter(progress: Progress, description: str) -> Callable[[int, int], None]:
    """A bar that is told (done, total), shown from the first time on."""
    task = progress.add_task(description, total=None, detail="", visible=False)

    def show(done: int, total: int) -> None:
        progress.update(task, completed=done, total=total, visible=True)

    return show


def drain(library: Library, progress: Progress) -> Backlog:
    """Does all the work that waits, or waits for the process that does it.

    Returns:
        What had waited.

    Raises:
        StorageError: If the embedder, the vector index or the disk fails.
    """
    bars_of = {
        name: counter(progress, description)
        for name, description in (
            ("words", "Words"),
            ("embeddings", "Embedding"),
            ("vectors", "Vectors"),
        )
    }
    most = dict.fromkeys(bars_of, 0)
    while True:
        with library.database.read() as connection:
            backlog = read_backlog(connection)
        for name, show in bars_of.items():
            waiting = getattr(backlog, name)
            most[name] = max(most[name], waiting)
            if most[name]:
                show(most[name] - waiting, most[name])
        if not work(library):
            if not backlog:
                return Backlog(**most)
            time.sleep(WAIT_SECONDS)


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

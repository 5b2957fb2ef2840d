"""Progress bars, and the indexing work that they show."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.progress import TimeElapsedColumn as Elapsed
from rich.table import Column

from storage.errors import VectorIndexError
from storage.index.indexer import Backlog, read_backlog
from storage.library import Library

WAIT_SECONDS = 0.2
"""Poll interval while another process does the embedding."""

ELSEWHERE = "another process does it"


def bars(console: Console) -> Progress:
    """Builds bars with a count, a time and, in the field `detail`, the current item."""
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
    """Returns a callback (done, total) that updates a bar, shown from the first call on."""
    task = progress.add_task(description, total=None, detail="", visible=False)

    def show(done: int, total: int) -> None:
        progress.update(task, completed=done, total=total, visible=True)

    return show


def drain(library: Library, progress: Progress) -> Backlog:
    """Does all pending work, or waits for the process that does it."""
    titles = {"words": "Words", "embeddings": "Embedding", "vectors": "Vectors"}
    tasks = {
        name: progress.add_task(title, total=None, detail="", visible=False)
        for name, title in titles.items()
    }
    most = dict.fromkeys(tasks, 0)
    elsewhere = False
    while True:
        with library.database.read() as connection:
            backlog = read_backlog(connection)
        for name, task in tasks.items():
            waiting = getattr(backlog, name)
            total = most[name] = max(most[name], waiting)
            detail = ELSEWHERE if elsewhere and waiting else ""
            progress.update(
                task, completed=total - waiting, total=total, detail=detail, visible=bool(total)
            )
        elsewhere = not work(library)
        if elsewhere and not backlog:
            return Backlog(**most)
        if elsewhere:
            time.sleep(WAIT_SECONDS)


def work(library: Library) -> bool:
    """Does one batch of indexing; returns False if none is left or another process does it."""
    try:
        return library.indexer.step()
    except VectorIndexError:  # the damaged index was dropped; this refills it from the record
        return library.indexer.step()

"""`toolcrib doctor --repair`: repairs indexes and queues, removes leftovers of killed writers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from server.cli.checks.data import RECORD_CHECK, VECTORS_CHECK, WORDS_CHECK, check_data
from server.cli.checks.findings import Finding, run_check
from server.cli.invocation import invocation
from storage.keeping.atomic import remove_stale

if TYPE_CHECKING:
    from server.app import App
    from server.settings import Settings

SUBJECT = "Repair"


def repair(settings: Settings, config: Path | None) -> Iterator[Finding]:
    """Repairs what fails, and nothing else; yields each repair.

    Args:
        settings: Their data directory and root are repaired.
        config: The TOML file of the settings.
    """
    failing = {
        finding.subject
        for finding in check_data(settings.data_dir, settings.chroma.url)
        if finding.ok is False
    }
    done = []
    if RECORD_CHECK in failing:
        done.append(
            Finding(
                SUBJECT,
                ok=False,
                detail="The record is damaged or missing: restore it from a backup. See"
                f" `{invocation()} restore --help`.",
            )
        )
    elif (settings.data_dir / "toolcrib.db").exists():
        done += _indexes(settings, config, failing)
    for folder in (settings.root, settings.data_dir):
        removed = remove_stale(folder)
        done += [Finding(SUBJECT, ok=True, detail=f"Removed {path}") for path in removed]
    yield from done or [Finding(SUBJECT, ok=True, detail="There was nothing to do.")]


def _indexes(settings: Settings, config: Path | None, failing: set[str]) -> list[Finding]:
    from server.cli.opened import open_app

    with open_app(root=settings.root, data_dir=settings.data_dir, config_file=config) as app:
        indexer = app.library.indexer
        done = []
        if WORDS_CHECK in failing:
            done.append(run_check(SUBJECT, lambda: _empty(indexer.rebuild_words, "words")))
        if VECTORS_CHECK in failing:
            done.append(run_check(SUBJECT, lambda: _empty(indexer.rebuild_vectors, "vectors")))
            if aside := app.library.vectors.home.aside:
                said = f"Moved what could not be used as the index of vectors to {aside}"
                done.append(Finding(SUBJECT, ok=True, detail=said))
        finished = run_check(SUBJECT, lambda: _finish(app))
        return [*done, finished] if finished.detail else done


def _empty(rebuild: Callable[[], None], index: str) -> str:
    rebuild()
    return f"Emptied the index of {index}, to fill it from the record."


def _finish(app: App) -> str:
    """Empties the queues; returns the counts."""
    from server.cli.terminal.progress import bars, drain
    from server.cli.terminal.screen import console

    with bars(console()) as progress:
        done = drain(app.library, progress)
    parts = [
        f"{count} {what}"
        for count, what in (
            (done.words, "chunks indexed by their words"),
            (done.embeddings, "embedded"),
            (done.vectors, "delivered to the vector index"),
        )
        if count
    ]
    return ", ".join(parts)

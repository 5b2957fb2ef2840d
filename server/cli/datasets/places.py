"""Names files for the tools, and keeps copies of files that a command replaces."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server.app import App
    from tools.sandbox.files.sandbox import Sandbox


def relative(paths: list[Path], here: Path) -> list[str] | None:
    """Returns paths relative to a directory, for recipes and reports that may move with it.

    Returns None if a path leads out of the directory.
    """
    if not all(
        path.is_relative_to(here) and path.resolve().is_relative_to(here.resolve())
        for path in paths
    ):
        return None
    return [str(path.relative_to(here)) for path in paths]


def files_at(app: App, root: Path, command: str) -> Sandbox:
    """Returns the files inside a root, with copies of replaced ones for `toolcrib undo`."""
    from server.composition.machine import make_history, make_sandbox
    from storage.keeping.changes.models import Caller

    sandbox = make_sandbox(app.settings, root)
    if not app.settings.undo.enabled:
        return sandbox
    settings = app.settings.model_copy(update={"root": root})
    caller = Caller(os.urandom(8).hex(), app.identity, app.sessions.own, command)
    return sandbox.recorded(make_history(settings, app.library, sandbox).of(caller))

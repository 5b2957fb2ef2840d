"""Constants that the server and its workers share; needs no package."""

from __future__ import annotations

from pathlib import PurePosixPath

AGAIN = "Write or fetch the file again."
"""The next step for a broken file."""

MADE = "made"
"""The directory of a run for new files of operators that take a directory."""

ROWS, TOLD = "rows", "told.json"
"""The files of a checkpoint: the rows, and a report of the operators before."""


def media_folder(export: str) -> str:
    """Returns the folder next to a result for new files."""
    path = PurePosixPath(export)
    return str(path.with_name(f"{path.stem}.media"))

"""What the server and its workers say alike; both import it, as it needs no package."""

from __future__ import annotations

from pathlib import PurePosixPath

AGAIN = "Write or fetch the file again."
"""What to do about a Parquet file that is broken."""

MADE = "made"
"""The directory of a run where operators write new files that are told where."""

ROWS, TOLD = "rows", "told.json"
"""The files of a checkpoint: the rows, and what is told of the operators before."""


def media_folder(export: str) -> str:
    """Returns the folder beside a result to which new files come."""
    path = PurePosixPath(export)
    return str(path.with_name(f"{path.stem}.media"))

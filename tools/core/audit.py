"""The audit log: one line a call, appended and never changed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tools.core.recording import FinishedCall

if TYPE_CHECKING:
    from tools.core.permission import Permission

__all__ = ["Audit"]


class Audit:
    """Writes down each call.

    Args:
        path: The file; it is created, for its owner alone.
        max_bytes: Size after which it is rotated.
        backups: Rotated files that are kept.
    """

    def __init__(self, path: Path, *, max_bytes: int = 10_000_000, backups: int = 10) -> None:
        self._path = path

    def keep(self, call: FinishedCall, permission: Permission) -> None:
        """Appends the line of a call; a failure to write is logged and ends no call."""

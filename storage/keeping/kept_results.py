"""Keeps large results in private files for a day, for the session that they belong to."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.keeping.atomic import STALE_SECONDS, atomic_file, is_temporary

KEPT_SECONDS = 24 * 3600
"""Age at which a result expires."""

MOST_RESULTS = 200
MOST_BYTES = 500_000_000
"""Limits on all kept results together; the oldest are removed first."""

_HANDLE = re.compile(r"r[0-9a-f]{16}")


@dataclass(frozen=True, slots=True)
class Owner:
    """The user and the session that a result belongs to."""

    user_id: str
    session_id: str


class KeptResults:
    """The kept results in a directory; several processes may share it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, owner: Owner, content: Any) -> str:  # noqa: ANN401  # any JSON value
        """Keeps a result and returns its handle.

        Raises:
            OSError: If it cannot be written.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = f"r{secrets.token_hex(8)}"
        head = json.dumps([owner.user_id, owner.session_id])
        with atomic_file(self._path(handle), replace=False) as path:
            path.write_text(f"{head}\n{json.dumps(content)}", encoding="utf-8")
        self.sweep()
        return handle

    def get(self, handle: str, owner: Owner) -> Any | None:  # noqa: ANN401  # any JSON value
        """Returns a result; None if the owner has no such result, or it expired."""
        if not _HANDLE.fullmatch(handle):
            return None
        path = self._path(handle)
        with suppress(OSError, ValueError), path.open(encoding="utf-8") as file:
            is_theirs = json.loads(file.readline()) == [owner.user_id, owner.session_id]
            if is_theirs and path.stat().st_mtime > time.time() - KEPT_SECONDS:
                return json.loads(file.read())
        return None

    def count(self, user_id: str) -> int:
        """Returns how many results of a user are kept."""
        return len(list(self._of(user_id)))

    def forget(self, user_id: str) -> int:
        """Deletes all results of a user and returns their number."""
        found = list(self._of(user_id))
        for path in found:
            path.unlink(missing_ok=True)
        return len(found)

    def sweep(self) -> None:
        """Deletes expired results, those over the limits, and files of killed writers."""
        if not self._folder.is_dir():
            return
        now, size, count = time.time(), 0, 0
        found: list[tuple[float, int, Path]] = []
        for path in self._folder.iterdir():
            with suppress(OSError):
                stat = path.stat()
                found.append((stat.st_mtime, stat.st_size, path))
        for mtime, length, path in sorted(found, reverse=True):
            if is_temporary(path):
                is_old = mtime < now - STALE_SECONDS
            else:
                size, count = size + length, count + 1
                is_over = count > 1 and (size > MOST_BYTES or count > MOST_RESULTS)
                is_old = is_over or mtime < now - KEPT_SECONDS
            if is_old:
                path.unlink(missing_ok=True)

    def _of(self, user_id: str) -> Iterator[Path]:
        for path in self._folder.glob("r*") if self._folder.is_dir() else ():
            with suppress(OSError, ValueError), path.open(encoding="utf-8") as file:
                if json.loads(file.readline())[0] == user_id:
                    yield path

    def _path(self, handle: str) -> Path:
        return self._folder / handle

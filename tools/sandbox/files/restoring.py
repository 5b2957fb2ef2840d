"""Restores a file to an earlier state, or removes it."""

from __future__ import annotations

from storage.keeping.changes.models import FileState
from tools.core.errors import ConflictError
from tools.sandbox.files.kept import look, look_for
from tools.sandbox.files.place import Place
from tools.sandbox.files.replace import remove_file, replace_file


def check_same(place: Place, path: str, expected: FileState) -> None:
    """Raises ConflictError unless a place is in the expected state."""
    now = look_for(place.directory, place.name, expected).state
    if not now.same_as(expected):
        raise ConflictError(
            f"The file {path!r} was changed meanwhile.",
            next_actions=["Look at it again before it is put back."],
        )


def put_back(place: Place, content: bytes | None, mode: int) -> None:
    """Restores a file atomically, or removes what is there.

    A link there is replaced and not followed. `content` is None if nothing was there, and `mode` 0
    if unknown.
    """
    now = look(place.directory, place.name, most_bytes=0).state
    if content is None or now.state == "directory":
        remove_file(place.directory, place.name)
    if content is not None:
        existing = place.status() if now.mode or now.state.startswith("large:") else None
        replace_file(place.directory, place.name, content, existing, mode=mode or None)

"""A place as it was before: its file put back, or what is there taken away."""

from __future__ import annotations

from storage.keeping.changes.models import FileState
from tools.core.errors import ConflictError
from tools.sandbox.files.kept import look, look_for
from tools.sandbox.files.place import Place
from tools.sandbox.files.replace import remove_file, replace_file


def check_same(place: Place, path: str, expected: FileState) -> None:
    """Raises ConflictError if something else is at a place than expected."""
    now = look_for(place.directory, place.name, expected).state
    if not now.same_as(expected):
        raise ConflictError(
            f"The file {path!r} was changed meanwhile.",
            next_actions=["Look at it again before it is put back."],
        )


def put_back(place: Place, content: bytes | None, mode: int) -> None:
    """Puts a file in the place of what is there, in one step, or removes that.

    Args:
        place: Where; a link there is replaced and not followed.
        content: What the file held; None if nothing was there.
        mode: Its mode; 0 if that is not known.

    Raises:
        OSError: If the disk or the rights refuse, or a directory is there that is not empty.
    """
    now = look(place.directory, place.name, most_bytes=0).state
    if content is None or now.state == "directory":
        remove_file(place.directory, place.name)
    if content is not None:
        existing = place.status() if now.mode or now.state.startswith("large:") else None
        replace_file(place.directory, place.name, content, existing, mode=mode or None)

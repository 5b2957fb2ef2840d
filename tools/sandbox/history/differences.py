"""What differs between two looks at a root."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from storage.keeping.changes.models import ABSENT, Difference, FileState
from tools.sandbox.history.walk import UNSEEN


def differences(
    before: Mapping[str, FileState], after: Mapping[str, FileState]
) -> list[Difference]:
    """What is known to have changed, in the order of the paths.

    A path is new only where it would have been seen: what lay in a directory that was passed over
    may have been there all the time, and whoever took it for new would remove it.

    Args:
        before: What was where.
        after: What is where.
    """
    return [each for each in _each(before, after) if not each.before.same_as(each.after)]


def _each(before: Mapping[str, FileState], after: Mapping[str, FileState]) -> Iterator[Difference]:
    touched = [path for path, now in after.items() if before.get(path) is not now]
    for path in sorted((*touched, *(before.keys() - after.keys()))):
        was, now = before.get(path, ABSENT), after.get(path, ABSENT)
        if was.why in UNSEEN or now.why in UNSEEN:
            continue
        if was is ABSENT and _is_hidden(path, before):
            continue
        yield Difference(path, was, now)


def _is_hidden(path: str, files: Mapping[str, FileState]) -> bool:
    """Whether a directory above a path, or the root itself, was passed over."""
    while path:
        path = path.rpartition("/")[0]
        found = files.get(path)
        if found is not None and found.why in UNSEEN:
            return True
    return False

"""The places that processes are kept from: the product's own files, and what the server runs.

Those that lie in the root are held where they are: each directory on the way is a mount of its own
in every confined process, and a mount cannot be moved or replaced from inside. So when the next
process is started, the paths are still what they were.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.plan import Kept
from tools.sandbox.processes.confinement.reach import Reach, is_beneath, outermost

__all__ = ["Keeper"]


class Keeper:
    """Finds what processes are kept from, and sees that it is still where it was.

    Args:
        root: The root, links resolved.
        reach: What processes see beside.
        protected: What they may neither read nor write.
        read_only: What they may not write.
    """

    def __init__(
        self, root: str, reach: Reach, protected: Sequence[Path], read_only: Sequence[Path]
    ) -> None:
        self._root = root
        self._visible = (root, *reach.readable)
        self._protected = [_placed(path, root) for path in protected]
        self._read_only = [_placed(path, root) for path in read_only]
        self._seen: dict[str, tuple[int, int]] = {}

    def find(self) -> Kept:
        """The places as they are now; those that do not exist are left out.

        Raises:
            UnavailableError: If one is reached through a link that processes could replace, or a
                directory is no longer the one that it was.
        """
        hidden = outermost(list(self._existing(self._protected)))
        read_only = [path for path in self._existing(self._read_only) if path != self._root]
        locked = [each for each in read_only if not any(is_beneath(each, top) for top in hidden)]
        inside = [path for path in (*hidden, *locked) if is_beneath(path, self._root)]
        pinned = {each for path in inside for each in self._between(path)}
        for path in (*inside, *pinned):
            self._check(path)
        return Kept(hidden, tuple(locked), tuple(sorted(pinned - {*hidden, *locked})))

    def _existing(self, paths: Iterable[str]) -> Iterator[str]:
        for path in paths:
            is_seen = any(is_beneath(path, each) for each in self._visible)
            if is_seen and os.path.lexists(path):
                yield path

    def _between(self, path: str) -> Iterator[str]:
        """The directories between the root and a path in it."""
        above = os.path.dirname(path)  # noqa: PTH120  # texts, not paths
        while above != self._root and is_beneath(above, self._root):
            yield above
            above = os.path.dirname(above)  # noqa: PTH120  # the same

    def _check(self, path: str) -> None:
        status = os.lstat(path)
        if stat.S_ISLNK(status.st_mode):
            raise UnavailableError(
                f"{path} is a link inside the root, which a program could replace.",
                next_actions=["Ask the user to configure the path that it leads to."],
            )
        found = (status.st_dev, status.st_ino)
        if stat.S_ISDIR(status.st_mode) and self._seen.setdefault(path, found) != found:
            raise UnavailableError(
                f"The directory {path} was replaced while the server ran.",
                next_actions=["Ask the user to look at it and to restart the server."],
            )


def _placed(path: Path, root: str) -> str:
    """The path as it is beneath the root, links in the root kept; else where it leads."""
    spelled = Path(os.path.abspath(path))  # noqa: PTH100  # links in the root are judged
    for above in (*reversed(spelled.parents), spelled):
        if os.path.realpath(above) == root:
            return os.path.normpath(os.path.join(root, spelled.relative_to(above)))  # noqa: PTH118  # texts, not paths
    return os.path.realpath(path)

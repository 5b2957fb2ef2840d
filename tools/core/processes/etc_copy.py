"""A copy of what programs read of /etc: one mount instead of fifty, which cost 8 ms a start."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path

from tools.core.processes.reach import Reach, is_beneath
from tools.core.processes.temporary import TemporaryPlace

__all__ = ["EtcCopy"]

_ETC = "/etc"


class EtcCopy:
    """A private directory, made once and removed in the end.

    Args:
        reach: What programs see.

    Attributes:
        path: Where it is.
        reach: What they see besides.
    """

    def __init__(self, reach: Reach) -> None:
        self._place = TemporaryPlace()
        self.path = self._place.path
        os.chmod(self.path, 0o755)  # noqa: PTH101, S103  # as /etc is, for programs that look
        within = [path for path in reach.readable if is_beneath(path, _ETC)]
        links = [link for link in reach.links if is_beneath(link[0], _ETC)]
        for path in within:
            self._copy(path)
        for path, target in links:
            self._placed(path).symlink_to(target)
        self.reach = Reach(
            tuple(path for path in reach.readable if path not in within),
            tuple(link for link in reach.links if link not in links),
        )

    def close(self) -> None:
        """Removes it."""
        self._place.close()

    def _placed(self, path: str) -> Path:
        place = Path(self.path, os.path.relpath(path, _ETC))
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def _copy(self, path: str) -> None:
        with suppress(OSError, shutil.Error):  # What the server may not read, programs may not.
            if Path(path).is_dir():
                shutil.copytree(path, self._placed(path), symlinks=True)
            else:
                shutil.copy2(path, self._placed(path))

"""A copy of what programs read of /etc: one mount instead of fifty, which cost 8 ms a start."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from tools.sandbox.processes.confinement.reach import Reach, is_beneath
from tools.sandbox.processes.temporary import TemporaryPlace

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
            _copy(path, str(self._placed(path)))
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


def _copy(source: str, target: str) -> None:
    """Copies a file, a link as it is, or a directory; shutil takes five times as long."""
    with suppress(OSError):  # What the server may not read, programs may not.
        status = os.lstat(source)
        if stat.S_ISLNK(status.st_mode):
            os.symlink(os.readlink(source), target)  # noqa: PTH115, PTH211  # texts, not paths
        elif stat.S_ISDIR(status.st_mode):
            os.mkdir(target, status.st_mode | stat.S_IRWXU)  # noqa: PTH102  # the same
            for name in os.listdir(source):  # noqa: PTH208  # the same
                _copy(f"{source}/{name}", f"{target}/{name}")
        elif stat.S_ISREG(status.st_mode):
            with open(source, "rb", buffering=0) as file:  # noqa: PTH123  # the same
                _write(target, file.read(), status.st_mode)


def _write(target: str, content: bytes, mode: int) -> None:
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, stat.S_IMODE(mode))
    with os.fdopen(fd, "wb", buffering=0) as file:
        file.write(content)

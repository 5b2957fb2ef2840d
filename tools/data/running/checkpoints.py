"""What runs had done that did not succeed, so that the same run goes on from there.

A checkpoint is what one operator left: rows, and what was told of the operators before. A worker
writes it in the directory of its run; it is taken from there and put there for the next run as it
is, and only a worker reads it. Its key is made here, of all that decides these rows.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tools.core.errors import ToolError
from tools.data.worker.agreed import ROWS, TOLD
from tools.sandbox.files.sandbox import Sandbox

AFTER_SECONDS = 10.0
"""Seconds of work that are worth a checkpoint: shorter runs begin anew."""

MOST_BYTES = 10_000_000_000
"""Of all checkpoints; the oldest go first, and a larger one is not kept."""

OLDEST_SECONDS = 7 * 86_400
"""From which age they are removed."""

_PART = "part-"
"""Begins the name of a checkpoint that is not whole."""

_OF_THE_RESULT = frozenset({"export_path", "export_type", "process"})
"""Keys of a recipe that say nothing of the rows between its operators, or stand for these."""


class Checkpoints:
    """The checkpoints of a data directory; what it does blocks.

    Args:
        path: Their directory.
        after: Seconds of work that are worth one.
    """

    def __init__(self, path: Path, *, after: float = AFTER_SECONDS) -> None:
        self.path = path
        self.after = after

    def put(self, key: str, stage: Sandbox, folder: str) -> bool:
        """Takes what a worker has left, and makes place for it.

        Args:
            key: Of what it is.
            stage: The files that workers see.
            folder: Where it is there.

        Returns:
            Whether it was whole, and not too large.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = Path(mkdtemp(prefix=_PART, dir=self.path))
        try:
            size = _copied(stage, folder, part)
            if size <= MOST_BYTES:
                self.prune(MOST_BYTES - size, new=part)
                with suppress(OSError):  # another run has left the same
                    part.rename(self.path / key)
        except ToolError:  # the worker has gone on, or what it left is no file
            return False
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return size <= MOST_BYTES

    def get(self, key: str, target: Path) -> bool:
        """Copies a checkpoint; returns whether there is one."""
        if not (self.path / key).is_dir():
            return False
        try:
            shutil.copytree(self.path / key, target)
        except (OSError, shutil.Error):  # another run has ended, and removed it
            shutil.rmtree(target, ignore_errors=True)
            return False
        return True

    def remove(self, key: str) -> None:
        """Removes a checkpoint, if there is one."""
        shutil.rmtree(self.path / key, ignore_errors=True)

    def clear(self) -> None:
        """Removes all of them."""
        shutil.rmtree(self.path, ignore_errors=True)

    def prune(self, most_bytes: int = MOST_BYTES, *, new: Path | None = None) -> None:
        """Removes what is old, and the oldest of what is too much.

        Args:
            most_bytes: Of what may be left.
            new: What is left in any case, and not counted.
        """
        total, now = 0, time.time()
        there = self.path.iterdir() if self.path.is_dir() else ()
        for each in sorted(there, key=_made, reverse=True):
            if each == new:
                continue
            with suppress(FileNotFoundError):  # another run has ended, and removed it
                total += sum(file.stat().st_size for file in each.iterdir())
            if total > most_bytes or now - _made(each) > OLDEST_SECONDS:
                shutil.rmtree(each, ignore_errors=True)


class Resuming:
    """The checkpoints of one run.

    Args:
        checkpoints: All of them.
        keys: The key after each operator, in their order; none where nothing is to be kept.
        directory: The directory of the run, in one that workers see.

    Attributes:
        done: How many operators need not be run again.
    """

    def __init__(self, checkpoints: Checkpoints, keys: Sequence[str], directory: Path) -> None:
        self.done = 0
        self._checkpoints = checkpoints
        self._keys = keys
        self._directory = directory

    def begin(self) -> dict[str, Any]:
        """Finds what an earlier run has left; returns what the worker is told of it; blocks."""
        self._checkpoints.prune()
        told = {"keep_after": self._checkpoints.after if self._keys else None, "kept": None}
        for done in range(len(self._keys), 0, -1):
            target = self._directory / "before" / str(done)
            if self._checkpoints.get(self._keys[done - 1], target):
                self.done = done
                return {**told, "kept": str(target)}
        return told

    def take(self) -> None:
        """Takes what the worker has left since; the run goes on if that cannot be kept; blocks."""
        stage = Sandbox(self._directory.parent)
        folder = f"{self._directory.name}/kept"
        with suppress(ToolError, OSError):  # nothing is there, or the disk is full
            names = [Path(each.path).name for each in stage.list_directory(folder).entries]
            done = max((int(name) for name in names if name.isdecimal()), default=0)
            is_next = self.done < done <= len(self._keys)
            if is_next and self._checkpoints.put(self._keys[done - 1], stage, f"{folder}/{done}"):
                self._remove()
                self.done = done

    def end(self) -> None:
        """Removes what the run does not need any more; blocks."""
        self._remove()
        self.done = 0

    def _remove(self) -> None:
        if self.done:
            self._checkpoints.remove(self._keys[self.done - 1])


def keys_of(config: Mapping[str, Any], directory: Path, *decides: object) -> list[str]:
    """Returns the key of a checkpoint after each operator of a recipe.

    Args:
        config: The recipe for the worker.
        directory: That of its run, whose name decides nothing.
        decides: What else decides the rows: the content of what is read, and what runs it.
    """
    common = {key: value for key, value in config.items() if key not in _OF_THE_RESULT}
    digest = hashlib.sha256(_line([common, *decides]).replace(str(directory).encode(), b""))
    keys = []
    for step in config["process"]:
        digest.update(_line(step))
        keys.append(digest.hexdigest())
    return keys


def _copied(stage: Sandbox, folder: str, part: Path) -> int:
    """Copies a checkpoint, if it is not too large; returns how large it is."""
    size = 0
    for name in (ROWS, TOLD):
        with stage.open_read(f"{folder}/{name}") as source, (part / name).open("wb") as copy:
            size += os.fstat(source.fileno()).st_size
            if size <= MOST_BYTES:
                shutil.copyfileobj(source, copy, 1 << 20)
    return size


def _line(value: object) -> bytes:
    said = json.dumps(value, ensure_ascii=False, sort_keys=True, default=repr)
    return said.encode(errors="surrogatepass") + b"\n"


def _made(path: Path) -> float:
    """When a checkpoint was made; long ago where it is not there any more."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0

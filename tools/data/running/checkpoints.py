"""Stores the state of failed runs, so that the same run continues from there.

A checkpoint is what one operator left: rows, and the reports of the operators before. A worker
writes it in the directory of its run; it is copied from there, and back for the next run, as it is,
and only a worker reads it. Its key is made here, of all that decides these rows.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tools.core.errors import ToolError
from tools.data.worker.agreed import ROWS, TOLD
from tools.sandbox.files.sandbox import Sandbox

AFTER_SECONDS = 10.0  # of work are worth a checkpoint: shorter runs begin again
MOST_BYTES = 10_000_000_000  # in all; the oldest go first, and a larger one is not kept
OLDEST_SECONDS = 7 * 86_400  # after which they are removed

_OF_THE_RESULT = frozenset({"export_path", "export_type", "process"})
"""Keys of a recipe that decide nothing about the rows between its operators, or are these."""


@dataclass(slots=True)
class Checkpoints:
    """The checkpoints in a directory, written after so many seconds of work; methods block."""

    path: Path
    after: float = AFTER_SECONDS

    def put(self, key: str, stage: Sandbox, folder: str) -> bool:
        """Takes what a worker has left in a folder; returns whether it was whole and not too large.

        Older checkpoints are removed to make room for it.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = Path(mkdtemp(prefix="part-", dir=self.path))
        try:
            size = _copy(stage, folder, part)
            if size <= MOST_BYTES:
                self.prune(MOST_BYTES - size, new=part)
                with suppress(OSError):  # another run has left the same
                    part.rename(self.path / key)
        except ToolError:  # the worker has gone on, or what it left is not a file
            return False
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return size <= MOST_BYTES

    def get(self, key: str, target: Path) -> bool:
        """Copies a checkpoint; returns whether there is one."""
        try:
            shutil.copytree(self.path / key, target)
        except OSError:  # there is none, or another run has ended and removes it
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
        """Removes old checkpoints, and the oldest of too many; `new` stays and is not counted."""
        total, oldest = 0, time.time() - OLDEST_SECONDS
        with suppress(FileNotFoundError):  # there is none, or another run has just removed one
            found = [(each.stat().st_mtime, each) for each in self.path.iterdir() if each != new]
            for changed, each in sorted(found, reverse=True):
                total += sum(file.stat().st_size for file in each.iterdir())
                if total > most_bytes or changed < oldest:
                    shutil.rmtree(each, ignore_errors=True)


@dataclass(slots=True)
class Resuming:
    """The checkpoints of one run; methods block.

    Attributes:
        directory: The directory of the run.
        keys: The key after each operator; none if nothing is kept.
        done: How many operators need not run again.
    """

    checkpoints: Checkpoints
    directory: Path
    keys: Sequence[str] = ()
    done: int = 0

    def begin(self) -> dict[str, Any]:
        """Finds what an earlier run has left; returns what the worker must know."""
        self.checkpoints.prune()
        kept = None
        for done in range(len(self.keys), 0, -1):
            target = self.directory / "before" / str(done)
            if self.checkpoints.get(self.keys[done - 1], target):
                self.done, kept = done, str(target)
                break
        return {"keep_after": self.checkpoints.after if self.keys else None, "kept": kept}

    def take(self) -> None:
        """Takes what the worker has left since; the run continues if that cannot be kept."""
        stage = Sandbox(self.directory.parent)
        folder = f"{self.directory.name}/kept"
        with suppress(ToolError, OSError):  # nothing is there, or the disk is full
            names = [Path(each.path).name for each in stage.list_directory(folder).entries]
            done = max((int(name) for name in names if name.isdecimal()), default=0)
            is_next = self.done < done <= len(self.keys)
            if is_next and self.checkpoints.put(self.keys[done - 1], stage, f"{folder}/{done}"):
                self.move_to(done)

    def move_to(self, done: int) -> None:
        """Notes how many operators are done, and removes the checkpoint of fewer; 0 ends it."""
        if self.done:
            self.checkpoints.remove(self.keys[self.done - 1])
        self.done = done


def keys_of(config: Mapping[str, Any], directory: Path, *decides: object) -> list[str]:
    """Returns the key of a checkpoint after each operator of a worker's configuration.

    `decides` is the content of what is read, and what runs it; the directory decides nothing.
    """
    common = {key: value for key, value in config.items() if key not in _OF_THE_RESULT}
    digest = hashlib.sha256(_line([common, *decides]).replace(str(directory).encode(), b""))
    keys = []
    for step in config["process"]:
        digest.update(_line(step))
        keys.append(digest.hexdigest())
    return keys


def _copy(stage: Sandbox, folder: str, part: Path) -> int:
    """Copies a checkpoint, if it is not too large; returns its size."""
    size = 0
    for name in (ROWS, TOLD):
        with stage.open_read(f"{folder}/{name}") as source, (part / name).open("wb") as copy:
            size += os.fstat(source.fileno()).st_size
            if size <= MOST_BYTES:
                shutil.copyfileobj(source, copy, 1 << 20)
    return size


def _line(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=repr)
    return text.encode(errors="surrogatepass") + b"\n"

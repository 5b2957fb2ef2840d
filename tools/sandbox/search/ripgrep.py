"""ripgrep, where it is installed: it says which files are worth reading."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from tools.core.errors import ToolError
from tools.sandbox.processes.models import Command, Level
from tools.sandbox.search.content import MAX_FILE_BYTES
from tools.sandbox.search.glob import alternatives
from tools.sandbox.search.ignored import VERSION_CONTROL

if TYPE_CHECKING:
    from tools.sandbox.processes.processes import Processes

__all__ = ["Ripgrep"]

OLDEST = (13, 0)
"""The oldest version that was tried."""

MOST_LEFT_OUT = 200
"""Directories that it is told to pass over at most; in others it looks for nothing."""

MAX_OUTPUT = 32 << 20
"""Bytes of paths; with more of them it was no help."""

_SUFFIX = re.compile(r"(?:\*\*/)?\*((?:\.\w+)+)", re.ASCII)
_SPECIAL = re.compile(r"([\\*?\[\]{}! ])")  # a space at the end would be taken off
_OPTIONS = (
    "--no-config",
    "--no-ignore",
    "--no-messages",
    "--no-mmap",
    "--hidden",
    "--text",
    "--color=never",
    "--files-with-matches",
    "--null",
    f"--max-filesize={MAX_FILE_BYTES}",
    *(f"--glob=!{name}" for name in sorted(VERSION_CONTROL)),
)


class Ripgrep:
    """Finds the files in which something can match.

    Args:
        processes: Starts it, confined; where nothing confines it, it is not used: it opens files
            by their paths, which may be links by then.
    """

    def __init__(self, processes: Processes) -> None:
        self._processes = processes
        self._asked = anyio.Lock()
        self._is_there: bool | None = None

    async def is_there(self) -> bool:
        """Whether it is installed, new enough, and confined when it runs."""
        async with self._asked:
            if self._is_there is None:
                self._is_there = await self._find()
        return self._is_there

    async def candidates(
        self, pattern: str, root: Path, start: str, names: str, left_out: Collection[str]
    ) -> list[str] | None:
        """The files in which a pattern fits, and perhaps others.

        Args:
            pattern: What `narrowed` made.
            root: The root, which has to be beneath that of the processes.
            start: Where to search, relative to the root.
            names: Pattern of the paths that are wanted, "" for all.
            left_out: Directories beneath the start to pass over.

        Returns:
            Their paths beneath the start; None where it does not know, because anything failed.
        """
        if not await self.is_there():
            return None
        prefix = "" if start == "." else f"{start}/"
        argv = (
            *_OPTIONS,
            *(f"--glob=*{suffix}" for suffix in _suffixes(names)),
            *_passing_over(prefix, left_out),
            f"--regexp={pattern}",
            "--",
            f"./{prefix}",
        )
        found = await self._run(argv, cwd=str(root))
        if found is None:
            return None
        before = len(os.fsencode(f"./{prefix}"))
        return [os.fsdecode(path[before:]) for path in found.split(b"\0") if path]

    async def _find(self) -> bool:
        try:
            if await self._processes.level() is Level.NONE:
                return False
        except ToolError:
            return False
        said = re.match(rb"ripgrep (\d+)\.(\d+)", await self._run(("--version",)) or b"")
        return said is not None and (int(said[1]), int(said[2])) >= OLDEST

    async def _run(self, argv: Sequence[str], *, cwd: str = ".") -> bytes | None:
        """What it prints; None where it did not end well."""
        command = Command(argv=("rg", *argv), cwd=cwd, writes=False, network=False, fast=True)
        try:
            program = await self._processes.start(command)
        except ToolError:
            return None
        try:
            printed = await _read_all(program.stdout)
            exit_code = await program.wait() if printed is not None else None
        finally:
            with anyio.CancelScope(shield=True):
                await program.aclose()
        return printed if exit_code in {0, 1} else None


async def _read_all(fd: int) -> bytes | None:
    """All that can be read; None where it is too much."""
    printed = bytearray()
    while len(printed) <= MAX_OUTPUT:
        try:
            chunk = os.read(fd, 1 << 16)
        except BlockingIOError:
            await anyio.wait_readable(fd)
            continue
        if not chunk:
            return bytes(printed)
        printed += chunk
    return None


def _suffixes(names: str) -> list[str]:
    """How the wanted names end, where the pattern says nothing else."""
    found = [_SUFFIX.fullmatch(each) for each in alternatives(names)] if names else []
    return [match[1] for match in found if match] if all(found) else []


def _passing_over(prefix: str, left_out: Collection[str]) -> list[str]:
    """Options that spare it directories; it needs none of them to find what is wanted."""
    paths = [prefix + path for path in sorted(left_out)[:MOST_LEFT_OUT]]
    escaped = (_SPECIAL.sub(r"\\\1", path) for path in paths if path.isprintable())
    return [f"--glob=!/{path}" for path in escaped]

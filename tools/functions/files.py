"""The function files of a server: found, watched, and their tools in the registry."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from tools.core.errors import UnavailableError
from tools.core.registry import ToolRegistry

if TYPE_CHECKING:
    from tools.functions.file import FunctionFile, WorkerOptions
    from tools.functions.messages import Problem

__all__ = ["FunctionFiles", "function_files"]

logger = logging.getLogger("toolcrib")

WATCH_SECONDS = 1.0
"""How often changes are looked for; a call looks for them itself."""
LONGEST_WAIT = 20.0
"""Seconds that a list of tools, or an unknown name, waits for files: clients give up after 30."""


class FunctionFiles:
    """Keeps the tools of function files in a registry, each file in a worker of its own.

    Args:
        paths: Python files, and directories of them.
        registry: Where their tools are kept, as long as `running` lasts.
        options: Makes what their workers are given; a server without files needs none.
    """

    def __init__(
        self, paths: Sequence[Path], registry: ToolRegistry, options: Callable[[], WorkerOptions]
    ) -> None:
        self._paths = paths
        self._registry = registry
        self._make_options = options
        self._files: dict[Path, FunctionFile] = {}
        self._conflicts: dict[Path, list[Problem]] = {}
        self._missing: set[Path] = set()
        self._group: TaskGroup | None = None
        self._first = anyio.Event()

    @property
    def problems(self) -> list[str]:
        """Returns what is wrong with the files as they are now, behind its place."""
        return [
            problem.at(path)
            for path, file in self._files.items()
            for problem in (*file.problems, *self._conflicts.get(path, ()))
        ]

    @asynccontextmanager
    async def running(self, *, watch: bool = True) -> AsyncIterator[None]:
        """Serves the files; `watch` loads them and looks for changes unasked, too."""
        async with anyio.create_task_group() as group:
            self._group = group
            if watch:
                group.start_soon(self._watch)
            yield
            group.cancel_scope.cancel()

    async def load_once(self) -> None:
        """Puts the tools as they are now into the registry, to be looked at, not called."""
        async with self.running(watch=False):
            await self.load()

    async def loaded(self) -> None:
        """Waits until every file was loaded once, if it does not take too long.

        There is nothing to wait for where none is served.
        """
        if self._group is None or not self._paths:
            return
        with anyio.move_on_after(LONGEST_WAIT) as waiting:
            await self._first.wait()
        if waiting.cancelled_caught:
            logger.warning(
                "The tools of some function files are not ready and are not listed in this run; "
                "they can be called when they are, and are listed from the next start."
            )

    async def refresh(self) -> None:
        """Loads what is new or has changed, or goes on with that if it takes too long.

        Raises:
            UnavailableError: If it does; it names the files that are not ready yet.
        """
        with anyio.move_on_after(LONGEST_WAIT) as waiting:
            await self.load()
        if waiting.cancelled_caught:
            names = ", ".join(file.path.name for file in self._files.values() if file.loading)
            raise UnavailableError(
                f"No tool has that name yet; {names} may have it, but is still being loaded.",
                next_actions=["Call it again in a minute."],
            )

    async def load(self) -> None:
        """Loads what is new or has changed, however long it takes."""
        for path in function_files(self._paths):
            if path not in self._files and self._group is not None:
                self._files[path] = self._file(path, self._group)
        async with anyio.create_task_group() as group:
            for file in self._files.values():
                group.start_soon(file.refresh)

    async def _watch(self) -> None:
        while True:
            await self.load()
            self._first.set()
            await anyio.sleep(WATCH_SECONDS)
            self._drop_missing()

    def _drop_missing(self) -> None:
        """Drops files that two looks in a row have missed: some editors remove what they save."""
        missing = self._files.keys() - set(function_files(self._paths))
        for path in missing & self._missing:
            if not self._files[path].loading:
                self._drop(path)
        self._missing = missing

    def _drop(self, path: Path) -> None:
        file = self._files.pop(path)
        logger.info("%s is gone, and its tools with it", path)
        file.retire()
        self._register(file)

    def _file(self, path: Path, group: TaskGroup) -> FunctionFile:
        from tools.functions.file import FunctionFile

        return FunctionFile(path, self._options, group, self._register)

    @cached_property
    def _options(self) -> WorkerOptions:
        return self._make_options()

    def _register(self, changed: FunctionFile) -> None:
        """Puts a file's tools in the place of those it had; the names of others stay theirs.

        A name that it gives up goes to the next file that has it.
        """
        self._registry.remove_source(f"function:{changed.path}")
        in_turn = sorted(self._files.values(), key=lambda file: file is not changed)
        self._conflicts = {file.path: self._add(file) for file in in_turn}

    def _add(self, file: FunctionFile) -> list[Problem]:
        """Adds a file's tools that are not in the registry yet, and returns why some cannot be."""
        from tools.functions.messages import Problem

        problems = []
        for spec in file.specs:
            if self._registry.get(spec.name) is spec:
                continue
            try:
                self._registry.add(spec)
            except ValueError as error:
                problem = Problem(str(error))
                problems.append(problem)
                if problem not in self._conflicts.get(file.path, ()):
                    logger.warning("%s", problem.at(file.path))
        return problems


def function_files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yields the files themselves, and the Python files directly in the directories.

    In a directory, names that begin with `.`, `_` or `test_` are left out, and `conftest.py`. What
    cannot be looked into has none. Each file comes once, in whatever ways it is named.
    """
    seen = set()
    for path in paths:
        for file in [path] if path.suffix == ".py" else _files_in(path):
            if (real := file.resolve()) not in seen:
                seen.add(real)
                yield file


def _files_in(directory: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(filter(_is_meant, directory.glob("*.py")))
    return []


def _is_meant(path: Path) -> bool:
    left_out = path.name.startswith((".", "_", "test_")) or path.name == "conftest.py"
    return not left_out and path.is_file()

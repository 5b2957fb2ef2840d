"""The function files of a server: found, watched, and what they offer where it is looked for."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from tools.core.browsing.offered import Offered
from tools.core.errors import UnavailableError
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec

if TYPE_CHECKING:
    from tools.functions.file import FunctionFile, WorkerOptions
    from tools.functions.workers.messages import Message, Problem
    from tools.functions.workers.offers import Offer

logger = logging.getLogger("toolcrib")

WATCH_SECONDS = 1.0
"""How often changes are looked for; a call looks for them itself."""
LONGEST_WAIT = 20.0
"""Seconds that a list of tools, or an unknown name, waits for files: clients give up after 30."""

LISTS = {"tool": "tools", "resource": "resources", "prompt": "prompts"}
"""The list in which each kind of offer is."""

OnChange = Callable[[frozenset[str]], None]
"""Is told which lists have changed."""


class FunctionFiles:
    """Keeps what function files offer where it is looked for, each file in a worker of its own.

    Args:
        paths: Python files, and directories of them.
        registry: Where their tools are kept, as long as `running` lasts.
        options: Makes what their workers are given; a server without files needs none.
        offered: Where their resources and prompts are kept, as long.

    Attributes:
        offered: The same.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        registry: ToolRegistry,
        options: Callable[[], WorkerOptions],
        offered: Offered | None = None,
    ) -> None:
        self._paths = paths
        self._registry = registry
        self.offered = Offered() if offered is None else offered
        self._make_options = options
        self._files: dict[Path, FunctionFile] = {}
        self._conflicts: dict[Path, list[Problem]] = {}
        self._missing: set[Path] = set()
        self._group: TaskGroup | None = None
        self._first = anyio.Event()
        self._listed: dict[str, list[Message]] = {}
        self._listeners: list[OnChange] = []

    @property
    def problems(self) -> list[str]:
        """Returns what is wrong with the files as they are now, behind its place."""
        return [
            problem.at(path)
            for path, file in self._files.items()
            for problem in (*file.problems, *self._conflicts.get(path, ()))
        ]

    def on_change(self, listener: OnChange) -> None:
        """Has somebody told which lists a saved, new or deleted file changed."""
        self._listeners.append(listener)

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
                "Some function files are not ready; what they offer is listed when they are."
            )

    async def refresh(self) -> None:
        """Loads what is new or has changed, or goes on with that if it takes too long."""
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
        logger.info("%s is gone, and what it offers with it", path)
        file.retire()
        self._register(file)

    def _file(self, path: Path, group: TaskGroup) -> FunctionFile:
        from tools.functions.file import FunctionFile

        return FunctionFile(path, self._options, group, self._register)

    @cached_property
    def _options(self) -> WorkerOptions:
        return self._make_options()

    def _register(self, changed: FunctionFile) -> None:
        """Puts what a file offers in the place of what it did; the names of others stay theirs.

        A name that it gives up goes to the next file that has it.
        """
        for kept in (self._registry, self.offered):
            kept.remove_source(f"function:{changed.path}")
        in_turn = sorted(self._files.values(), key=lambda file: file is not changed)
        self._conflicts = {file.path: self._add(file) for file in in_turn}
        self._tell()

    def _add(self, file: FunctionFile) -> list[Problem]:
        """Adds what a file offers that is not there yet, and returns why some of it cannot be."""
        from tools.functions.workers.messages import Problem

        problems = []
        for offer in file.offers.values():
            if self._holds(offer):
                continue
            try:
                if isinstance(offer, ToolSpec):
                    self._registry.add(offer)
                else:
                    self.offered.add(offer)
            except ValueError as error:
                problem = Problem(str(error))
                problems.append(problem)
                if problem not in self._conflicts.get(file.path, ()):
                    logger.warning("%s", problem.at(file.path))
        return problems

    def _holds(self, offer: Offer) -> bool:
        if isinstance(offer, ToolSpec):
            return self._registry.get(offer.name) is offer
        return self.offered.holds(offer)

    def _tell(self) -> None:
        """Tells which lists are others than they were; a function may only work otherwise."""
        listed: dict[str, list[Message]] = {kind: [] for kind in LISTS.values()}
        for file in self._files.values():
            for offer, sent in zip(file.offers.values(), file.listed, strict=True):
                if self._holds(offer):
                    listed[LISTS[sent["kind"]]].append(sent)
        kinds = frozenset(kind for kind in listed if listed[kind] != self._listed.get(kind, []))
        self._listed = listed
        if kinds:
            for listener in self._listeners:
                listener(kinds)


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

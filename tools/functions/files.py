"""Finds and watches a server's function files, and registers what they offer."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio.abc import TaskGroup

from tools.core.errors import UnavailableError
from tools.core.offered import Offered
from tools.core.registry import ToolRegistry
from tools.core.spec import ToolSpec

if TYPE_CHECKING:
    from tools.functions.file import FunctionFile, WorkerOptions
    from tools.functions.workers.messages import Message, Problem
    from tools.functions.workers.offers import Offer

logger = logging.getLogger("toolcrib")

WATCH_SECONDS = 1.0  # interval between checks for changes; each call also checks
LONGEST_WAIT = 20.0
"""Seconds that a tool list or an unknown name waits for files; clients time out after 30."""

LISTS = {"tool": "tools", "resource": "resources", "prompt": "prompts"}
"""The list for each kind of offer."""

OnChange = Callable[[frozenset[str]], None]  # receives the lists that have changed


class FunctionFiles:
    """Registers the offers of function files, each served by its own worker."""

    def __init__(
        self,
        paths: Sequence[Path],
        registry: ToolRegistry,
        options: Callable[[], WorkerOptions],  # not called without files
        offered: Offered | None = None,
    ) -> None:
        self.paths = paths  # may be replaced while running
        self._registry = registry
        self.offered = Offered() if offered is None else offered
        self._options = cache(options)
        self._files: dict[Path, FunctionFile] = {}
        self._conflicts: dict[Path, list[Problem]] = {}
        self._missing: set[Path] = set()
        self._group: TaskGroup | None = None
        self._first = anyio.Event()
        self._listed: dict[str, list[Message]] = {}
        self._listeners: list[OnChange] = []

    @property
    def problems(self) -> list[str]:
        """Returns what is wrong with the current files, with locations."""
        return [
            problem.at(path)
            for path, file in self._files.items()
            for problem in (*file.problems, *self._conflicts.get(path, ()))
        ]

    def on_change(self, listener: OnChange) -> None:
        """Registers a listener for the lists that a saved, new or deleted file changes."""
        self._listeners.append(listener)

    @asynccontextmanager
    async def running(self, *, watch: bool = True) -> AsyncIterator[None]:
        """Serves the files; `watch` also loads them and follows changes without a call."""
        async with anyio.create_task_group() as group:
            self._group = group
            if watch:
                group.start_soon(self._watch)
            yield
            group.cancel_scope.cancel()

    async def load_once(self) -> None:
        """Registers the current tools for listing, not for calls."""
        async with self.running(watch=False):
            await self.load()

    async def loaded(self) -> None:
        """Waits until every file was loaded once, up to a limit.

        Returns immediately if no files are served.
        """
        if self._group is None or not self.paths:
            return
        with anyio.move_on_after(LONGEST_WAIT) as waiting:
            await self._first.wait()
        if waiting.cancelled_caught:
            logger.warning(
                "Some function files are not ready; what they offer is listed when they are."
            )

    async def refresh(self) -> None:
        """Loads new and changed files; after a limit, loading continues in the background."""
        with anyio.move_on_after(LONGEST_WAIT) as waiting:
            await self.load()
        if waiting.cancelled_caught:
            names = ", ".join(file.path.name for file in self._files.values() if file.loading)
            raise UnavailableError(
                f"No tool has that name yet; {names} may have it, but is still being loaded.",
                next_actions=["Call it again in a minute."],
            )

    async def load(self) -> None:
        """Loads new and changed files, however long it takes."""
        for path in function_files(self.paths):
            if path not in self._files and self._group is not None:
                from tools.functions.file import FunctionFile

                self._files[path] = FunctionFile(path, self._options(), self._group, self._register)
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
        """Drops files that were missing twice in a row; some editors remove a file while saving."""
        missing = self._files.keys() - set(function_files(self.paths))
        for path in missing & self._missing:
            if not self._files[path].loading:
                file = self._files.pop(path)
                logger.info("%s is gone, and what it offers with it", path)
                file.retire()
                self._register(file)
        self._missing = missing

    def _register(self, changed: FunctionFile) -> None:
        """Replaces a file's offers; names that belong to other files stay theirs.

        A name that the file gives up goes to the next file that has it.
        """
        for kept in (self._registry, self.offered):
            kept.remove_source(f"function:{changed.path}")
        in_turn = sorted(self._files.values(), key=lambda file: file is not changed)
        self._conflicts = {file.path: self._add(file) for file in in_turn}
        self._tell()

    def _add(self, file: FunctionFile) -> list[Problem]:
        """Adds a file's missing offers, and returns the problems of those that cannot be added."""
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
        """Notifies listeners of changed lists; a function's new body alone changes none."""
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
    """Yields the given files, and the Python files directly in the given directories.

    In a directory, `conftest.py` and names that begin with `.`, `_` or `test_` are skipped. An
    unreadable directory counts as empty. Each file is yielded once, even if given several times.
    """
    seen = set()
    for path in paths:
        for file in [path] if path.suffix == ".py" else _files_in(path):
            if (real := file.resolve()) not in seen:
                seen.add(real)
                yield file


def _files_in(directory: Path) -> list[Path]:
    with suppress(OSError):
        return sorted(
            path
            for path in directory.glob("*.py")
            if path.is_file()
            and path.name != "conftest.py"
            and not path.name.startswith((".", "_", "test_"))
        )
    return []

"""Serves one function file in its last good version from a worker."""

from __future__ import annotations

import importlib.util
import logging
import math
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

from tools.core.context import RequestContext
from tools.core.errors import (
    NotFoundError,
    ToolError,
    ToolFailedError,
    UnavailableError,
    UnknownToolError,
)
from tools.functions.environment import EnvironmentFailedError, Environments
from tools.functions.script import ScriptMetadataError, read_script_metadata
from tools.functions.workers.messages import Load, Loaded, Message, Problem
from tools.functions.workers.offers import (
    Key,
    Offer,
    decode_answer,
    decode_offer,
    decode_values,
    key_of,
)
from tools.functions.workers.process import OutputLog, OwnProcess
from tools.functions.workers.store import StoreOptions, store_of
from tools.functions.workers.worker import Worker, WorkerEndedError
from tools.sandbox.files.openat import HeldRoot, identity

logger = logging.getLogger("toolcrib")

LOAD_SECONDS = 120.0  # time limit for a file's imports
RETRY_SECONDS = 30.0  # delay before a failed environment is tried again

Stamp = tuple[int, int, int] | None
Listener = Callable[[str], Awaitable[None]]


_USES = {"resource": "read", "prompt": "render"}
"""The field of the function that serves each kind of offer."""


class _NotLoadedError(Exception):
    def __init__(self, problems: list[Problem], *, passing: bool = False) -> None:
        super().__init__()
        self.problems = problems
        self.passing = passing


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """The options that all workers share."""

    environments: Environments
    variables: Mapping[str, str]
    held: HeldRoot
    protected: tuple[Path, ...]
    read_only: tuple[Path, ...]
    memory_bytes: int  # memory limit of one process; 0 sets none
    starts: anyio.CapacityLimiter  # limits how many may be starting at once
    stores: Mapping[Path, StoreOptions]


class FunctionFile:
    """One file, always ready to be called in its last good version."""

    def __init__(
        self,
        path: Path,
        options: WorkerOptions,
        group: TaskGroup,
        changed: Callable[[FunctionFile], None],
    ) -> None:
        """Serves nothing until the first refresh; `changed` is called for each new version."""
        self.path = path
        self.problems: list[Problem] = []
        self.offers: dict[Key, Offer] = {}
        self.listed: list[Message] = []
        self._options = options
        self._group = group
        self._changed = changed
        self._files: Sequence[str] = (str(path),)
        self._stamps: Mapping[str, Stamp] = {}
        self._retry_at = math.inf
        self._source: str | None = None
        self._worker: Worker | None = None
        self.loading = False
        self._listeners: set[MemoryObjectSendStream[str]] = set()

    async def refresh(self, listener: Listener | None = None, *, restart: bool = False) -> None:
        """Serves the file as last saved, or its last version without errors.

        The listener receives progress lines if it takes a while. Only `restart` starts an ended
        worker again, since it is not needed without a call.
        """
        is_due = self._stamps != _stamps(self._files) or time.monotonic() > self._retry_at
        if not self.loading and (is_due or (restart and self._lacks_worker())):
            self.loading = True
            self._group.start_soon(self._load)
        if self.loading:
            listened, lines = anyio.create_memory_object_stream[str](math.inf)
            self._listeners.add(listened)
            try:
                with lines:
                    async for line in lines:
                        if listener is not None:
                            await listener(line)
            finally:
                self._listeners.discard(listened)
                listened.close()

    async def _ask(self, key: Key, asked: Mapping[str, Any], context: RequestContext) -> Message:
        steps = count(1)

        async def report(line: str) -> None:
            # Progress has to grow, and the function's own should exceed this.
            await context.report_progress(next(steps) / 1000, None, line)

        await self.refresh(report, restart=True)
        kind, name = key
        if key not in self.offers:
            raise self._gone(kind, name)
        if self._lacks_worker():
            raise UnavailableError(f"The process that runs {self.path.name} cannot be started.")
        try:
            return await cast("Worker", self._worker).call({"key": key, **asked}, context)
        except WorkerEndedError as error:
            logger.warning("The worker of %s %s during a call of %s", self.path, error, name)
            raise ToolFailedError(
                f"{name} did not finish: the process that runs {self.path.name} {error}. The next"
                " call starts it again."
            ) from None  # already logged

    def _gone(self, kind: str, name: str) -> ToolError:
        if kind != "tool":
            return NotFoundError(f"{self.path.name} was changed and has no {kind} {name!r} now.")
        return UnknownToolError(
            f"{self.path.name} was changed and has no function {name!r} now.",
            suggestions=[other for each, other in self.offers if each == kind],
        )

    def retire(self) -> None:
        """Serves no new calls; running ones finish."""
        if self._worker is not None and not self._worker.retired:
            self._worker.retire()

    def _lacks_worker(self) -> bool:
        return self._worker is None or self._worker.retired

    async def _load(self) -> None:
        stamps = _stamps(self._files)  # later saves are another version
        self._retry_at = math.inf
        try:
            problems = await self._serve(self._read())
            self._log_problems(logging.WARNING, problems)
        except _NotLoadedError as error:
            self._log_problems(logging.ERROR, error.problems)
            if error.passing:
                self._retry_at = time.monotonic() + RETRY_SECONDS
            if self._source is not None and self._lacks_worker():
                await self._serve_again(self._source)
        except Exception:
            logger.exception("%s cannot be loaded", self.path)
            self.problems = [Problem("It cannot be loaded; see the log.")]
        finally:
            self._stamps = {file: stamps.get(file, _stamp(file)) for file in self._files}
            self.loading = False
            for listener in self._listeners:
                listener.close()
            self._listeners.clear()

    async def _serve_again(self, source: str) -> None:
        """Serves the last good version, but also watches what the broken one imported."""
        files = self._files
        with suppress(_NotLoadedError):
            await self._serve(source)
        self._files = [*files, *(file for file in self._files if file not in files)]

    async def _serve(self, source: str) -> list[Problem]:
        """Switches to a new version, and returns the problems of what cannot be offered."""
        worker = await self._started(source)
        loaded = cast("Loaded", worker.loaded)
        try:
            offers = [self._decoded(sent) for sent in loaded.offers or ()]
        except Exception:
            worker.retire()
            raise
        self.offers = {key_of(offer): offer for offer in offers}
        self.listed = loaded.offers or []
        replaced, self._worker, self._source = self._worker, worker, source
        if replaced is not None and not replaced.retired:
            replaced.retire()
        names = ", ".join(offer.name for offer in offers) or "nothing"
        logger.log(logging.INFO if replaced else logging.DEBUG, "%s serves %s", self.path, names)
        self._changed(self)
        return loaded.problems

    def _decoded(self, sent: Message) -> Offer:
        """Decodes an offer; its functions ask the worker."""
        kind = sent["kind"]
        key = kind, sent["uri"] if kind == "resource" else sent["name"]

        async def use(arguments: Mapping[str, Any], context: RequestContext) -> object:
            return decode_answer(kind, await self._ask(key, {"arguments": arguments}, context))

        async def complete(
            argument: str, typed: str, given: Mapping[str, str], context: RequestContext
        ) -> list[str]:
            asked = {"completed": [argument, typed, given]}
            return decode_values(await self._ask(key, asked, context))

        if kind == "tool":
            return decode_offer(sent, invoke=use)
        functions: dict[str, Callable[..., Any]] = {_USES[kind]: use, "complete": complete}
        return decode_offer(sent, **functions)

    def _read(self) -> str:
        try:
            return importlib.util.decode_source(self.path.read_bytes())
        except OSError as error:
            raise _NotLoadedError([Problem(f"It cannot be read: {error.strerror}.")]) from error
        except (SyntaxError, UnicodeDecodeError) as error:
            raise _NotLoadedError([Problem(f"It is not Python source: {error}.")]) from error

    async def _started(self, source: str) -> Worker:
        options = self._options
        try:
            python = await options.environments.get(read_script_metadata(source), self._report)
            load = self._order(source, python)
            start = partial(OwnProcess.start, python, options.held.way_in(), options.variables)
            async with options.starts:
                with anyio.fail_after(LOAD_SECONDS):
                    worker: Worker = await self._group.start(
                        Worker.run, start, load, OutputLog(self.path.name).feed
                    )
        except ScriptMetadataError as error:
            raise _NotLoadedError([Problem(error.message, error.line)]) from error
        except TimeoutError as error:
            text = f"Its import took longer than {LOAD_SECONDS:g} seconds."
            raise _NotLoadedError([Problem(text)]) from error
        except (EnvironmentFailedError, OSError, UnavailableError) as error:
            raise _NotLoadedError([Problem(str(error))], passing=True) from error
        except WorkerEndedError as error:
            raise _NotLoadedError([Problem(f"Its process {error} while it was loaded.")]) from error
        loaded = cast("Loaded", worker.loaded)
        self._files = [str(self.path), *loaded.files]
        if loaded.offers is None:
            raise _NotLoadedError(loaded.problems)
        return worker

    def _order(self, source: str, python: Path) -> Load:
        options = self._options
        store, no_store = store_of(self.path, options.stores, python)
        return Load(
            path=str(self.path),
            source=source,
            root=options.held.path,
            root_identity=identity(os.fstat(options.held.check())),
            protected=tuple(map(str, options.protected)),
            read_only=tuple(map(str, options.read_only)),
            memory_bytes=options.memory_bytes,
            store=None if store is None else store.encode(),
            no_store=no_store,
        )

    async def _report(self, line: str) -> None:
        logger.info("%s: %s", self.path.name, line)
        for listener in self._listeners:
            listener.send_nowait(line)

    def _log_problems(self, level: int, problems: list[Problem]) -> None:
        for problem in problems:
            if problem not in self.problems:
                logger.log(level, "%s", problem.at(self.path))
        self.problems = problems


def _stamps(files: Sequence[str]) -> dict[str, Stamp]:
    return {file: _stamp(file) for file in files}


def _stamp(file: str) -> Stamp:
    """Returns a value that changes with every save; None without a file."""
    try:
        status = Path(file).stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns

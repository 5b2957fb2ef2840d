"""One function file: its last good version, served from a worker."""

from __future__ import annotations

import importlib.util
import logging
import math
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
from tools.core.errors import ToolFailedError, UnavailableError, UnknownToolError
from tools.core.result import ToolResult
from tools.core.spec import ToolSpec
from tools.functions.environment import EnvironmentFailedError, Environments
from tools.functions.messages import Load, Loaded, Problem, decode_spec
from tools.functions.script import ScriptMetadataError, read_script_metadata
from tools.functions.worker import Worker, WorkerEndedError

__all__ = ["FunctionFile", "WorkerOptions"]

logger = logging.getLogger("toolcrib")

LOAD_SECONDS = 120.0
"""How long a file's imports may take."""

RETRY_SECONDS = 30.0
"""After how long an environment that could not be made is tried again."""

Stamp = tuple[int, int, int] | None
Listener = Callable[[str], Awaitable[None]]


class _NotLoadedError(Exception):
    def __init__(self, problems: list[Problem], *, passing: bool = False) -> None:
        super().__init__()
        self.problems = problems
        self.passing = passing


async def _ignore(_line: str) -> None:
    await anyio.lowlevel.checkpoint()


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """What all workers are given.

    Attributes:
        environments: The interpreters, with what the files depend on.
        variables: The environment variables of the processes.
        root: The directory that the functions work in.
        protected: Paths closed to the sandbox that functions are given.
        read_only: Paths closed to its writes.
        memory_bytes: Memory that one process may have; 0 sets no limit.
        starts: How many of them may be starting at once.
    """

    environments: Environments
    variables: Mapping[str, str]
    root: Path
    protected: tuple[Path, ...]
    read_only: tuple[Path, ...]
    memory_bytes: int
    starts: anyio.CapacityLimiter


class FunctionFile:
    """One file, always ready to be called in its last good version.

    Attributes:
        path: The file.
        problems: What is wrong with the file as it is now, or with some of its functions.
        specs: The tools of its last good version.
    """

    def __init__(
        self,
        path: Path,
        options: WorkerOptions,
        group: TaskGroup,
        changed: Callable[[FunctionFile], None],
    ) -> None:
        """Serves nothing until it is first refreshed; `changed` is told of each new version."""
        self.path = path
        self.problems: list[Problem] = []
        self.specs: list[ToolSpec] = []
        self._options = options
        self._group = group
        self._changed = changed
        self._files: Sequence[str] = (str(path),)
        self._stamps: Mapping[str, Stamp] = {}
        self._retry_at = math.inf
        self._source: str | None = None
        self._worker: Worker | None = None
        self._loading = False
        self._listeners: set[MemoryObjectSendStream[str]] = set()

    @property
    def loading(self) -> bool:
        """Returns whether a version is being loaded right now."""
        return self._loading

    async def refresh(self, listener: Listener = _ignore, *, restart: bool = False) -> None:
        """Serves the file as it was last saved, or as it last was without error.

        The listener receives a line now and then, if it takes a while. A worker that has ended is
        started anew with `restart` alone: without a call nobody needs it.
        """
        if not self._loading and (self._is_due() or (restart and self._lacks_worker())):
            self._loading = True
            self._group.start_soon(self._load)
        if self._loading:
            listened, lines = anyio.create_memory_object_stream[str](math.inf)
            self._listeners.add(listened)
            try:
                with lines:
                    async for line in lines:
                        await listener(line)
            finally:
                self._listeners.discard(listened)
                listened.close()

    async def call(
        self, name: str, arguments: Mapping[str, Any], context: RequestContext
    ) -> ToolResult:
        """Runs one of its functions, as they are now.

        Raises:
            UnknownToolError: If the file as it is now has no such function.
            ToolFailedError: If its worker ended during the call.
            UnavailableError: If its worker cannot be started.
        """
        steps = count(1)

        async def report(line: str) -> None:
            # Progress has to grow, and the function's own is to be greater than this.
            await context.report_progress(next(steps) / 1000, None, line)

        await self.refresh(report, restart=True)
        if all(spec.name != name for spec in self.specs):
            raise UnknownToolError(
                f"{self.path.name} was changed and has no function {name!r} now.",
                suggestions=[spec.name for spec in self.specs],
            )
        if self._lacks_worker():
            raise UnavailableError(f"The process that runs {self.path.name} cannot be started.")
        try:
            return await cast("Worker", self._worker).call(name, arguments, context)
        except WorkerEndedError as error:
            logger.warning("The worker of %s %s during a call of %s", self.path, error, name)
            raise ToolFailedError(
                f"{name} did not finish: the process that runs {self.path.name} {error}.",
                next_actions=["Ask for less in one call; the next call restarts the process."],
            ) from None  # it is in the log

    def retire(self) -> None:
        """Serves no more calls than those that are running."""
        if self._worker is not None and not self._worker.retired:
            self._worker.retire()

    def _is_due(self) -> bool:
        return self._stamps != _stamps(self._files) or time.monotonic() > self._retry_at

    def _lacks_worker(self) -> bool:
        return self._worker is None or self._worker.retired

    async def _load(self) -> None:
        """Serves the file as it is now; where it is broken, as it last was without error."""
        stamps = _stamps(self._files)  # what is saved from here on is another version
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
            self.problems = [Problem("It cannot be loaded, for the reason in the log.")]
        finally:
            self._stamps = {file: stamps.get(file, _stamp(file)) for file in self._files}
            self._loading = False
            for listener in self._listeners:
                listener.close()
            self._listeners.clear()

    async def _serve_again(self, source: str) -> None:
        """Serves the last good version, while what the broken one imported is watched too."""
        files = self._files
        with suppress(_NotLoadedError):
            await self._serve(source)
        self._files = [*files, *(file for file in self._files if file not in files)]

    async def _serve(self, source: str) -> list[Problem]:
        """Lets a version take over, and returns what of it is no tool."""
        worker = await self._started(source)
        loaded = cast("Loaded", worker.loaded)
        try:
            self.specs = [
                decode_spec(sent, partial(self.call, sent["name"])) for sent in loaded.tools or ()
            ]
        except Exception:
            worker.retire()
            raise
        replaced, self._worker, self._source = self._worker, worker, source
        if replaced is not None and not replaced.retired:
            replaced.retire()
        names = ", ".join(spec.name for spec in self.specs) or "no tools"
        logger.log(logging.INFO if replaced else logging.DEBUG, "%s serves %s", self.path, names)
        self._changed(self)
        return loaded.problems

    def _read(self) -> str:
        try:
            return importlib.util.decode_source(self.path.read_bytes())
        except OSError as error:
            raise _NotLoadedError([Problem(f"It cannot be read: {error.strerror}.")]) from error
        except (SyntaxError, UnicodeDecodeError) as error:
            raise _NotLoadedError([Problem(f"It is not Python source: {error}.")]) from error

    async def _started(self, source: str) -> Worker:
        """A worker that has loaded a version of the file."""
        options = self._options
        load = Load(
            path=str(self.path),
            source=source,
            root=str(options.root),
            protected=tuple(map(str, options.protected)),
            read_only=tuple(map(str, options.read_only)),
            memory_bytes=options.memory_bytes,
        )
        try:
            python = await options.environments.get(read_script_metadata(source), self._report)
            async with options.starts:
                with anyio.fail_after(LOAD_SECONDS):
                    worker: Worker = await self._group.start(
                        Worker.run, python, load, options.variables
                    )
        except ScriptMetadataError as error:
            raise _NotLoadedError([Problem(error.message, error.line)]) from error
        except TimeoutError as error:
            text = f"It was not imported within {LOAD_SECONDS:g} seconds."
            raise _NotLoadedError([Problem(text)]) from error
        except (EnvironmentFailedError, OSError) as error:
            raise _NotLoadedError([Problem(str(error))], passing=True) from error
        except WorkerEndedError as error:
            raise _NotLoadedError([Problem(f"Its process {error} while it was loaded.")]) from error
        loaded = cast("Loaded", worker.loaded)
        self._files = [str(self.path), *loaded.files]
        if loaded.tools is None:
            raise _NotLoadedError(loaded.problems)
        return worker

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
    """What changes with every save; None where there is no file."""
    try:
        status = Path(file).stat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns

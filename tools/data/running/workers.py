"""Workers: Data-Juicer in confined processes, kept warm, which see copies of what they read."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from threading import Lock
from typing import Any, cast

import anyio
from anyio.abc import TaskStatus
from anyio.to_thread import run_sync

from tools.core.context import RequestContext
from tools.core.errors import Action, ToolError, UnavailableError
from tools.core.machine import Machine, first_use
from tools.data.running.checkpoints import Checkpoints
from tools.data.running.environment import DataEnvironment, Installed
from tools.functions.programs.confined_process import ConfinedProcess
from tools.functions.workers.messages import Load, decode_error
from tools.functions.workers.process import OutputLog
from tools.functions.workers.worker import Worker, WorkerEndedError
from tools.sandbox.processes.idle_workers import Background, IdleWorkers
from tools.sandbox.processes.models import Command
from tools.sandbox.processes.processes import Processes
from tools.sandbox.processes.temporary import PrivateDirectory

_logger = logging.getLogger("toolcrib")

PROGRAM = Path(__file__).parents[1] / "worker"
"""The program of a worker; the server imports only `agreed`, `entries` and `texts` of it."""

MOST_AT_ONCE = 2  # workers that run recipes; each keeps a processor busy

LOOK = (
    Action("Look at the rows with {}.", "inspect_dataset"),
    Action("Look at the operator with {}.", "get_operator_info"),
)
"""Next actions after a failure for which a worker has none."""

_START = "import sys; sys.path.append(sys.argv.pop()); from worker.main import main; main({})"


@dataclass(frozen=True, slots=True)
class _Warm:
    """A worker that has loaded Data-Juicer."""

    worker: Worker
    installed: Installed | None


class DataWorkers:
    """Runs what needs Data-Juicer; close with `aclose`.

    `make` makes what starts programs that see one directory and nothing of the user's; given True,
    programs that nothing confines, which reach a cluster.
    """

    def __init__(
        self,
        environment: DataEnvironment,
        checkpoints: Checkpoints,
        make: Callable[[Path, bool], Processes],
    ) -> None:
        self.environment = environment
        self.checkpoints = checkpoints
        self._make = make
        self._making = Lock()
        self._background = Background()
        self._places = anyio.Semaphore(MOST_AT_ONCE)
        self._processes: dict[bool, Processes] = {}
        self._idle: IdleWorkers[_Warm] = IdleWorkers(lambda warm: warm.worker.aclose())

    def runs_on(self) -> str:
        """Returns a digest of what decides which rows a recipe leaves; blocks."""
        digest = hashlib.sha256(repr(self.environment.installed()).encode())
        for path in sorted(PROGRAM.glob("*.py")):
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def check(self) -> None:
        """Raises UnavailableError unless Data-Juicer is set up."""
        self.environment.python()

    @asynccontextmanager
    async def directory(self) -> AsyncIterator[Path]:
        """Makes a directory that workers see, and removes it in the end."""
        path = Path(await run_sync(lambda: mkdtemp(dir=self._prepare())))
        try:
            yield path
        finally:
            with anyio.CancelScope(shield=True):
                await run_sync(partial(shutil.rmtree, path, ignore_errors=True))

    async def ask(
        self,
        request: Mapping[str, Any],
        context: RequestContext,
        *,
        alone: bool = False,
        free: bool = False,
    ) -> Mapping[str, Any]:
        """Sends a request, which `worker.main` describes, to a worker and returns its answer.

        The worker serves no other request if it is to be `alone`, or `free`: not confined.
        """
        alone = alone or free
        async with self._places:
            warm = await self._take(alone=alone, free=free)
            try:
                message = await warm.worker.call(request, context)
            except WorkerEndedError as error:
                raise _unavailable(error, "Try it on fewer rows, or in parts.") from error
            except BaseException:  # it may go on for long
                await warm.worker.aclose()
                raise
            if alone:
                await warm.worker.aclose()
            else:
                await self._idle.put(warm)
        if message["is_error"]:
            failure = decode_error({**message["structured"], "dismissed": None})
            failure.next_actions = failure.next_actions or LOOK
            raise failure
        answer: Mapping[str, Any] = message["structured"]
        return answer

    async def aclose(self) -> None:
        """Ends all of them."""
        with anyio.CancelScope(shield=True):
            await self._idle.aclose()
            await self._background.aclose()
            for processes in self._processes.values():
                await processes.aclose()
            if "_root" in vars(self):
                await run_sync(self._root.close)

    @cached_property
    def _root(self) -> PrivateDirectory:
        return PrivateDirectory()

    def _prepare(self) -> Path:
        """Returns the directory that workers see; blocks."""
        self.check()
        with self._making:  # two would each make one, and the first is removed
            return Path(self._root.path)

    async def _take(self, *, alone: bool, free: bool) -> _Warm:
        root = await run_sync(self._prepare)
        installed = self.environment.installed()
        while not alone and (warm := self._idle.take()) is not None:
            if warm.installed == installed and not warm.worker.retired:
                return _Warm(warm.worker, installed)
            await warm.worker.aclose()
        group = await self._background.group()
        try:
            worker: Worker = await group.start(self._run, partial(self._start, root, free))
        except WorkerEndedError as error:
            again = "Ask the user to run `toolcrib data remove` and `toolcrib data setup`."
            raise _unavailable(error, again) from error
        return _Warm(worker, installed)

    async def _run(
        self, start: Callable[[], Awaitable[ConfinedProcess]], *, task_status: TaskStatus[Worker]
    ) -> None:
        load = Load(path="Data-Juicer", source="")
        try:
            await Worker.run(start, load, OutputLog(load.path).feed, task_status=task_status)
        except (WorkerEndedError, ToolError):  # it did not start, which its caller reports
            raise
        except Exception:
            _logger.exception("A process of Data-Juicer failed and is ended")

    async def _start(self, root: Path, free: bool) -> ConfinedProcess:
        if free not in self._processes:
            self._processes[free] = self._make(root, free)
        processes = self._processes[free]
        if free:  # it reaches what rules deny to programs, and runs for this call alone
            (await processes.denied()).check()
        python = str(self.environment.python())
        command = Command(
            argv=(python, "-s", "-E", "-c", _START.format(free), str(PROGRAM.parent)),
            environment={
                "HF_DATASETS_OFFLINE": "1",
                "HF_HUB_OFFLINE": "1",
                "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
                "PYTHONDONTWRITEBYTECODE": "1",
                "TQDM_DISABLE": "1",
                "PATH": f"{Path(python).parent}:/usr/local/bin:/usr/bin:/bin",
                "RAY_TMPDIR": gettempdir(),  # where a cluster is found
            },
            session=("data",),  # processes of `dj-process` speak to each other by sockets
        )
        return await ConfinedProcess.start(processes, command)


def _unavailable(error: WorkerEndedError, next_action: str) -> UnavailableError:
    what = f"The process that runs Data-Juicer {error}."
    return UnavailableError(what, next_actions=[next_action])


async def workers_of(machine: Machine) -> DataWorkers:
    """Returns the workers of a machine."""
    return cast("DataWorkers", await first_use(machine, "data"))

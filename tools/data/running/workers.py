"""Workers: Data-Juicer in confined processes, kept warm, which see copies of what they read."""

from __future__ import annotations

import hashlib
import logging
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import gettempdir, mkdtemp
from typing import Any, cast

import anyio
import anyio.to_thread
from anyio.abc import TaskStatus

from tools.core.calling.words import Action
from tools.core.context import RequestContext
from tools.core.errors import ToolError, UnavailableError
from tools.core.machine import Machine, first_use
from tools.data.running.checkpoints import Checkpoints
from tools.data.running.environment import DataEnvironment, Installed
from tools.functions.programs.cell_process import CellProcess
from tools.functions.workers.background import Background
from tools.functions.workers.messages import Load, decode_error
from tools.functions.workers.output_log import OutputLog
from tools.functions.workers.worker import Worker, WorkerEndedError
from tools.sandbox.processes.models import Command
from tools.sandbox.processes.processes import Processes
from tools.sandbox.processes.temporary import PrivateDirectory

_logger = logging.getLogger("toolcrib")

PROGRAM = Path(__file__).parents[1] / "worker"
"""What a worker runs; but for `agreed` and `entries` never imported here: it needs packages."""

IDLE_SECONDS = 300.0  # a worker waits for the next recipe

MOST_AT_ONCE = 2  # workers that run recipes; each keeps a processor busy

LOOK = (
    Action("Look at the rows with {}.", "inspect_dataset"),
    Action("Look at the operator with {}.", "get_operator_info"),
)
"""What is to be done where a worker knows nothing better."""

_START = "import sys; sys.path.append(sys.argv.pop()); from worker.main import main; main({})"

_VARIABLES = {
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_DISABLE_PROGRESS_BARS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TQDM_DISABLE": "1",
}


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
        self._background = Background()
        self._places = anyio.Semaphore(MOST_AT_ONCE)
        self._root: PrivateDirectory | None = None
        self._processes: dict[bool, Processes] = {}
        self._idle: list[_Warm] = []

    def runs_on(self) -> str:
        """Returns what differs where a recipe may not leave the same rows; blocks."""
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
        await anyio.to_thread.run_sync(self._prepare)
        root = cast("PrivateDirectory", self._root).path
        path = Path(await anyio.to_thread.run_sync(partial(mkdtemp, dir=root)))
        try:
            yield path
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(partial(shutil.rmtree, path, ignore_errors=True))

    async def ask(
        self,
        asked: Mapping[str, Any],
        context: RequestContext,
        *,
        alone: bool = False,
        free: bool = False,
    ) -> Mapping[str, Any]:
        """Sends a request to a worker and returns its answer.

        Args:
            asked: The request, which `worker.main` describes.
            context: The call, to which progress is reported.
            alone: Whether the worker serves no other request.
            free: Whether it is not confined; it serves no other request then.
        """
        async with self._places:
            warm = await self._take(alone=alone or free, free=free)
            try:
                message = await warm.worker.call(asked, context)
            except WorkerEndedError as error:
                raise UnavailableError(
                    f"The process that runs Data-Juicer {error}.",
                    next_actions=["Try it on fewer rows, or in parts."],
                ) from error
            except BaseException:  # it may go on for long
                with anyio.CancelScope(shield=True):
                    await warm.worker.aclose()
                raise
            if alone or free:
                await warm.worker.aclose()
            else:
                await self._keep(warm)
        if message["is_error"]:
            failure = decode_error({**message["structured"], "dismissed": None})
            failure.next_actions = failure.next_actions or LOOK
            raise failure
        answer: Mapping[str, Any] = message["structured"]
        return answer

    async def aclose(self) -> None:
        """Ends all of them."""
        with anyio.CancelScope(shield=True):
            await self._background.aclose()
            for processes in self._processes.values():
                await processes.aclose()
            if self._root is not None:
                await anyio.to_thread.run_sync(self._root.close)

    def _prepare(self) -> None:
        self.check()
        if self._root is None:
            self._root = PrivateDirectory()

    async def _take(self, *, alone: bool, free: bool) -> _Warm:
        await anyio.to_thread.run_sync(self._prepare)
        installed = self.environment.installed()
        while self._idle and not alone:
            warm = self._idle.pop()
            if warm.installed == installed and not warm.worker.retired:
                warm.uses += 1
                return warm
            await warm.worker.aclose()
        group = await self._background.group()
        try:
            worker: Worker = await group.start(self._run, free)
        except WorkerEndedError as error:
            raise UnavailableError(
                f"The process that runs Data-Juicer {error}.",
                next_actions=[
                    "Ask the user to run `toolcrib data remove` and `toolcrib data setup`."
                ],
            ) from error
        return _Warm(worker, installed)

    async def _run(self, free: bool, *, task_status: TaskStatus[Worker]) -> None:
        load = Load(path="Data-Juicer", source="")
        sink = OutputLog(load.path).feed
        try:
            await Worker.run(partial(self._start, free), load, sink, task_status=task_status)
        except (WorkerEndedError, ToolError):  # it was never there: its caller is told
            raise
        except Exception:
            _logger.exception("A process of Data-Juicer could not be cared for and is ended")

    async def _start(self, free: bool) -> CellProcess:
        if free not in self._processes:
            root = Path(cast("PrivateDirectory", self._root).path)
            self._processes[free] = self._make(root, free)
        if free:  # it reaches what rules deny to programs, and runs for this call alone
            (await self._processes[free].denied()).check()
        python = str(self.environment.python())
        command = Command(
            argv=(python, "-s", "-E", "-c", _START.format(free), str(PROGRAM.parent)),
            environment={
                **_VARIABLES,
                "PATH": f"{Path(python).parent}:/usr/local/bin:/usr/bin:/bin",
                "RAY_TMPDIR": gettempdir(),  # where a cluster is found
            },
            session=("data",),  # processes of `dj-process` speak to each other by sockets
        )
        return await CellProcess.start(self._processes[free], command)

    async def _keep(self, warm: _Warm) -> None:
        self._idle.append(warm)
        group = await self._background.group()
        group.start_soon(self._end_if_idle, warm, warm.uses)

    async def _end_if_idle(self, warm: _Warm, uses: int) -> None:
        await anyio.sleep(IDLE_SECONDS)
        if warm in self._idle and warm.uses == uses:
            self._idle.remove(warm)
            await warm.worker.aclose()


@dataclass(eq=False, slots=True)
class _Warm:
    """A worker that has loaded Data-Juicer."""

    worker: Worker
    installed: Installed | None
    uses: int = 0


async def workers_of(machine: Machine) -> DataWorkers:
    """Returns the workers of a machine."""
    return cast("DataWorkers", await first_use(machine, "data"))

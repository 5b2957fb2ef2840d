"""CodeWorkers that are really confined, at each level that this kernel has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from server.composition.machine import MachineParts
from server.settings import Settings
from tests.tools.sandbox.processes.conftest import use_only
from tools.core.context import Grant, RequestContext
from tools.core.result import ToolResult
from tools.functions.programs.code_workers import CodeWorkers
from tools.functions.workers.messages import Load, Message
from tools.functions.workers.worker import Worker
from tools.sandbox.processes.models import Level
from tools.sandbox.processes.output import Capture

OpenWorkers = Callable[..., AbstractAsyncContextManager[CodeWorkers]]


@pytest.fixture
def open_workers(tmp_path: Path) -> OpenWorkers:
    """Opens code workers at a level, which has to work, with settings of a user."""

    @asynccontextmanager
    async def opened(level: Level = Level.BUBBLEWRAP, **system: Any) -> AsyncIterator[CodeWorkers]:
        (tmp_path / "root").mkdir(exist_ok=True)
        mode = "off" if level is Level.NONE else "required"
        settings = Settings(
            root=tmp_path / "root", data_dir=tmp_path / "data", system={"sandbox": mode, **system}
        )
        workers = MachineParts(settings, {}).code_workers()
        use_only(workers._processes, level)
        try:
            yield workers
        finally:
            await workers.aclose()

    return opened


async def nothing(_context: object, name: str, arguments: Any) -> ToolResult:
    """Answers each call with itself."""
    return ToolResult({"called": name, **arguments}, "")


def program(source: str) -> Load:
    return Load(path="<program>", source=dedent(source), kind="program")


async def ask(worker: Worker, call: Any = nothing) -> Message:
    """What a program says that it came to."""
    message = await worker.call({}, RequestContext().granted(Grant(call=call)))
    outcome: Message = message["structured"]
    return outcome


async def run(workers: CodeWorkers, source: str, call: Any = nothing) -> tuple[Message, str]:
    """What a program comes to, and what it printed."""
    printed = Capture(100_000)
    worker = await workers.take(program(source), printed.feed)
    try:
        return await ask(worker, call), printed.excerpt(100_000).text
    finally:
        await worker.aclose()

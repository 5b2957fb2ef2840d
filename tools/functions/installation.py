"""One run of an installer: told of while it lasts, ended with all its children when cancelled."""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from os import killpg
from pathlib import Path
from signal import SIGKILL
from subprocess import PIPE, STDOUT
from typing import cast

import anyio
from anyio.abc import ByteReceiveStream, Process
from anyio.streams.text import TextReceiveStream

from tools.functions import guard

__all__ = ["InstallerFailedError", "Report", "run_installer"]

Report = Callable[[str], Awaitable[None]]
"""Tells a person one short line; must not raise."""

INTERVAL = 0.3
"""Seconds between two reports of one run; of the lines between them only the last is told."""
LONGEST = 100
"""Characters of a line that are told."""
KEPT_LINES = 200
KEPT_CHARACTERS = 4000
"""How much of the end of the output, and of one line, is kept for an error."""

_TELLING = re.compile(r"\s*((Collecting|Downloading|Building|Resolved|Install(ing|ed)) .*)")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class InstallerFailedError(Exception):
    """The installer gave up.

    Attributes:
        lines: The end of what it printed, without escape sequences and empty lines.
    """

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = tuple(lines)


async def run_installer(
    command: Sequence[str | Path], *, environ: Mapping[str, str], cwd: Path, report: Report
) -> None:
    """Runs a command to its end. Cancelled or with the server dead, no process of it is left.

    Args:
        command: The program and its arguments.
        environ: Its whole environment.
        cwd: The directory to run it in.
        report: Told the lines that say how far it is, a few a second at most.

    Raises:
        InstallerFailedError: If it ends with another status than 0.
        OSError: If no process can be started.
    """
    printed: deque[str] = deque(maxlen=KEPT_LINES)
    process = await anyio.open_process(
        [sys.executable, "-I", "-S", guard.__file__, *map(str, command)],
        stdin=PIPE,
        stderr=STDOUT,
        cwd=cwd,
        env=environ,
        start_new_session=True,
    )
    try:
        await _follow(process, printed, report)
        status = await process.wait()
    finally:
        with anyio.CancelScope(shield=True):
            if process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):  # it ended by itself just now
                    killpg(process.pid, SIGKILL)
            await process.aclose()
    if status != 0:
        raise InstallerFailedError(list(printed))


async def _follow(process: Process, printed: deque[str], report: Report) -> None:
    news = _News(report)
    stream = cast("ByteReceiveStream", process.stdout)  # a pipe was asked for
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(news.tell)
        await _read(stream, printed, news)
        news.end()


async def _read(stream: ByteReceiveStream, printed: deque[str], news: _News) -> None:
    """Splits what comes into lines, keeps their end and passes on the telling ones."""
    rest = ""
    async for text in TextReceiveStream(stream, errors="replace"):
        *lines, rest = _ESCAPE.sub("", rest + text).split("\n")
        rest = rest[-KEPT_CHARACTERS:]
        for line in lines:
            _keep(line, printed)
            if telling := _TELLING.match(line):
                news.put(telling[1])
    _keep(rest, printed)


def _keep(line: str, printed: deque[str]) -> None:
    if line.strip():
        printed.append(line.rstrip()[-KEPT_CHARACTERS:])


class _News:
    """Tells the latest line, with a pause after each, so that no flood of lines gets through."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._latest = ""
        self._came = anyio.Event()
        self._ended = anyio.Event()

    def put(self, line: str) -> None:
        self._latest = line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
        self._came.set()

    def end(self) -> None:
        self._ended.set()
        self._came.set()

    async def tell(self) -> None:
        while self._latest or not self._ended.is_set():
            await self._came.wait()
            self._came = anyio.Event()
            line, self._latest = self._latest, ""
            if line:
                await self._report(line)
            with anyio.move_on_after(INTERVAL):
                await self._ended.wait()

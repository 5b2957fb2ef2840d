"""A running program: its end, its output, and what to keep and return of that."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import anyio

from tools.core.result import OmitNone, ToolModel
from tools.core.unicode_safety import visible_controls
from tools.sandbox.processes.launching.messages import EndReason
from tools.sandbox.processes.models import Level

if TYPE_CHECKING:
    from tools.sandbox.processes.launching.launcher import SupervisedProcess

State = Literal["exited", "timed_out", "running"]

MOST_SECONDS = 3_600  # limit on the seconds that a call may wait for its program
KEPT_BYTES = 1_000_000  # limit on output and errors together
_PIPE_BYTES = 65_536  # bytes to read at once: the usual capacity of a pipe
_READS_AT_ONCE = 16  # limit on consecutive reads before other tasks run
_MOST_REMAINING = 4_194_304  # limit on the bytes read after a program has ended; no pipe holds more
_LONGEST_CHARACTER = 4  # limit on the bytes of a UTF-8 character (RFC 3629)

_CUT_AT_END = re.compile(rb"(?:[\xc0-\xff]|[\xe0-\xff][\x80-\xbf]|[\xf0-\xff][\x80-\xbf]{2})\Z")
_CUT_AT_START = re.compile(rb"\A[\x80-\xbf]{1,3}")

_Sink = Callable[[bytes], None]
_Finish = Callable[[EndReason], Awaitable[tuple[str, ...]]]


class Program:
    """A running, confined program."""

    closed: Mapping[str, str] = MappingProxyType({})  # paths that rules deny to it, with the rules
    refused: Callable[[], tuple[str, ...]] = tuple  # returns a note on each newly refused host

    def __init__(
        self,
        process: SupervisedProcess,
        level: Level,
        notes: tuple[str, ...],
        finish: _Finish,  # called once after its end, with a reason if its supervisor killed it
    ) -> None:
        self.level = level
        self.notes = notes
        self.pid = process.pid
        self.stdout = process.stdout
        self.stderr = process.stderr
        self._process = process
        # A separate task, so that it finishes even if no caller waits.
        self._ending = asyncio.create_task(self._watch(finish))

    @property
    def has_ended(self) -> bool:
        """True once all its processes have ended and protected files are restored."""
        return self._ending.done()

    async def wait(self) -> int:
        """Waits for the end of all its processes; returns the exit code as a shell reports it."""
        return await asyncio.shield(self._ending)

    async def kill(self) -> None:
        """Kills it with its descendants; returns when none is left."""
        await self._process.kill()
        await self.wait()

    async def aclose(self) -> None:
        """Kills it, and closes its descriptors."""
        try:
            await self.kill()
        finally:
            await self._process.aclose()

    async def _watch(self, finish: _Finish) -> int:
        try:
            return await self._process.wait()
        finally:
            from tools.sandbox.files.text_files import visible

            # The program chooses the names of files and hosts in them.
            self.notes += tuple(map(visible, await finish(self._process.end_reason)))


@dataclass(frozen=True, slots=True)
class Completed:
    """The end of a program."""

    exit_code: int  # as a shell reports it: for a signal, 128 plus its number
    timed_out: bool


async def communicate(
    program: Program | SupervisedProcess, stdout: _Sink, stderr: _Sink, *, seconds: float
) -> Completed:
    """Reads a program's output until it ends, or kills it at its deadline; then closes it.

    Leaves nothing of the program behind, even if cancelled.
    """
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(read_output, program, stdout, stderr)
            with anyio.move_on_after(seconds) as deadline:
                await program.wait()
            if deadline.cancelled_caught:
                await program.kill()
        return Completed(await program.wait(), deadline.cancelled_caught)
    finally:
        with anyio.CancelScope(shield=True):
            await program.aclose()


async def read_output(program: Program | SupervisedProcess, stdout: _Sink, stderr: _Sink) -> None:
    """Reads a program's output until the program ends.

    Then reads what is left in its pipes without waiting for their end: others might hold them open.
    """
    async with anyio.create_task_group() as readers:
        readers.start_soon(_read, program.stdout, stdout)
        readers.start_soon(_read, program.stderr, stderr)
        await program.wait()
        readers.cancel_scope.cancel()
    read_rest(program, stdout, stderr)


def read_rest(program: Program | SupervisedProcess, stdout: _Sink, stderr: _Sink) -> None:
    """Reads what is in a program's pipes, without waiting for more."""
    _read_rest(program.stdout, stdout)
    _read_rest(program.stderr, stderr)


async def _read(descriptor: int, sink: _Sink) -> None:
    while True:
        await anyio.wait_readable(descriptor)
        for _ in range(_READS_AT_ONCE):
            try:
                data = os.read(descriptor, _PIPE_BYTES)
            except BlockingIOError:
                break
            if not data:
                return
            sink(data)


def _read_rest(descriptor: int, sink: _Sink) -> None:
    left = _MOST_REMAINING
    while left > 0:
        try:
            data = os.read(descriptor, _PIPE_BYTES)
        except BlockingIOError:
            return
        if not data:
            return
        sink(data)
        left -= len(data)


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The shown part of an output."""

    text: str
    omitted: int


class Capture:
    """Keeps the first and last bytes of an output, half of the limit each; counts those between."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._half = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._lost_lines = 0

    def feed(self, data: bytes) -> None:
        """Processes the next bytes."""
        self.size += len(data)
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        excess = len(self._tail) - self._half
        if excess > 0:
            self._lost_lines += self._tail.count(b"\n", 0, excess)
            del self._tail[:excess]

    def excerpt(self, limit: int) -> Excerpt:
        """Returns the kept bytes as text, cut at nearby line ends."""
        kept = bytes(self._head + self._tail)
        if len(kept) == self.size <= limit:
            return Excerpt(kept.decode("utf-8", "replace"), 0)
        half = min(limit // 2, self._half)
        head = _beginning(kept[:half])
        tail = _end(kept[len(kept) - half :])
        omitted = self.size - len(head) - len(tail)
        lines = self._lost_lines + kept.count(b"\n", len(head), len(kept) - len(tail))
        note = f"[… {omitted} bytes with {lines} line ends are left out here …]\n"
        shown = head.decode("utf-8", "replace")
        between = "" if shown.endswith("\n") or not shown else "\n"
        return Excerpt(shown + between + note + tail.decode("utf-8", "replace"), omitted)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of an output."""

    text: str
    first: int  # bytes of output before this part
    next: int  # bytes of output up to the end of this part
    lost: int  # requested bytes that were discarded


class RecentOutput:
    """Keeps the last bytes of an output."""

    def __init__(self, limit: int) -> None:
        self.size = 0
        self._limit = limit
        self._kept = bytearray()

    def feed(self, data: bytes) -> None:
        """Processes the next bytes."""
        self.size += len(data)
        self._kept += data
        excess = len(self._kept) - self._limit
        if excess > 0:
            del self._kept[:excess]

    def part(self, since: int, limit: int, *, is_complete: bool) -> Part:
        """Returns the output from an offset on; a negative one counts from the end.

        The limit is at least 4 bytes. If the output is not complete, a last partial character is
        held back.
        """
        oldest = self.size - len(self._kept)
        wanted = min(since, self.size) if since >= 0 else max(0, self.size + since)
        first = max(wanted, oldest)
        if since < 0 or first > wanted:  # this may split a character
            start = bytes(self._kept[first - oldest : first - oldest + _LONGEST_CHARACTER])
            first += len(start) - len(_CUT_AT_START.sub(b"", start))
        data = bytes(self._kept[first - oldest : first - oldest + limit])
        is_end = first + len(data) == self.size
        if not is_end:
            data = data[: data.rfind(b"\n") + 1] or data
        if not (is_end and is_complete):
            data = _CUT_AT_END.sub(b"", data)
        text = data.decode("utf-8", "replace")
        return Part(text, first, first + len(data), max(0, oldest - wanted))


class Transcript(ToolModel):
    """The output and the outcome of a program.

    Attributes:
        stdout: Its output; of a long output only the beginning and the end.
        stderr: Its error output; likewise.
        exit_code: As a shell reports it (128 plus the number of a signal); absent while it runs.
        state: Whether it exited, was killed at its deadline, or runs in the background.
        sandbox: The sandbox level.
        truncated: Whether output was omitted.
        notes: Further notes.
    """

    stdout: str
    stderr: str
    exit_code: OmitNone[int]
    state: State
    sandbox: Level
    truncated: bool
    notes: list[str]

    def to_text(self) -> str:
        """Formats a line with the outcome, the notes, the output, then the errors."""
        lines = [f"[{self._ending()}; sandbox: {self.sandbox}]"]
        lines += [f"[{note}]" for note in self.notes]
        if self.stdout:
            lines.append(visible_controls(self.stdout).removesuffix("\n"))
        if self.stderr:
            lines += ["[stderr]", visible_controls(self.stderr).removesuffix("\n")]
        return "\n".join(lines)

    def _ending(self) -> str:
        match self.state:
            case "exited":
                return f"exit code {self.exit_code}"
            case "timed_out":
                return "ended at its deadline, with all that it started"
            case "running":
                return "running"


def shares(limit: int, first: int, second: int) -> tuple[int, int]:
    """Divides a limit between two sizes: each gets half, plus what the other does not need."""
    half = limit // 2
    return max(half, limit - second), max(half, limit - first)


def _beginning(data: bytes) -> bytes:
    """Removes an incomplete last line unless it is most of the data; else a partial character."""
    end = data.rfind(b"\n") + 1
    return data[:end] if end > len(data) // 2 else _CUT_AT_END.sub(b"", data)


def _end(data: bytes) -> bytes:
    """Removes an incomplete first line unless it is most of the data; else a partial character."""
    start = data.find(b"\n") + 1
    return data[start:] if 0 < start <= len(data) // 2 else _CUT_AT_START.sub(b"", data)

"""What a program did, as its caller and the model are told."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import anyio
from pydantic import BaseModel

from tools.sandbox.processes.capture import Capture, shares
from tools.sandbox.processes.launching.attendance import attend
from tools.sandbox.processes.models import Command, Level

if TYPE_CHECKING:
    from tools.core.context import ProgressReporter
    from tools.sandbox.processes.processes import Processes

__all__ = ["MOST_SECONDS", "State", "Transcript", "harmless", "transcribed"]

State = Literal["exited", "timed_out", "running"]

MOST_SECONDS = 3_600
"""Seconds that a call may wait for its program."""

SHOWN_BYTES = 22_000
"""Of output and errors together: the text for the model holds it whole."""

REPORT_INTERVAL = 1.0
"""Seconds between two reports that the program still runs."""

_PICTURES = {code: 0x2400 + code for code in range(0x20) if code not in b"\t\n"}
_PICTURES |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
"""Control characters to the pictures that Unicode has of them."""


class Transcript(BaseModel):
    """What a program wrote, and how it ended.

    Attributes:
        stdout: What it wrote; of a long output the beginning and the end.
        stderr: What it wrote as errors; the same.
        exit_code: As a shell has it (128 and its number for a signal); null while it runs.
        state: Whether it ended by itself, was ended at its deadline, or runs in the background.
        sandbox: What confined it.
        truncated: Whether something of its output is left out.
        notes: What to know besides.
    """

    stdout: str
    stderr: str
    exit_code: int | None
    state: State
    sandbox: Level
    truncated: bool
    notes: list[str]

    def to_text(self) -> str:
        """A line that says how it ended, the notes, its output, then its errors."""
        lines = [f"[{self._ending()}; sandbox: {self.sandbox}]"]
        lines += [f"[{note}]" for note in self.notes]
        if self.stdout:
            lines.append(harmless(self.stdout).removesuffix("\n"))
        if self.stderr:
            lines += ["[stderr]", harmless(self.stderr).removesuffix("\n")]
        return "\n".join(lines)

    def _ending(self) -> str:
        match self.state:
            case "exited":
                return f"exit code {self.exit_code}"
            case "timed_out":
                return "ended at its deadline, with all that it started"
            case "running":
                return "running"


def harmless(text: str) -> str:
    """A text with pictures of its control characters, which could steer a terminal."""
    return text.replace("\r\n", "\n").translate(_PICTURES)


async def transcribed(
    processes: Processes, command: Command, *, seconds: float, report: ProgressReporter
) -> Transcript:
    """Runs a program to its end, and tells what it did.

    However this returns, also by being cancelled, nothing of the program is left.

    Args:
        processes: Starts it.
        command: What to run.
        seconds: How long it may take; it is ended then.
        report: Told about once a second that it still runs.

    Raises:
        ToolError: If it cannot be started as it has to be.
    """
    out, err = Capture(SHOWN_BYTES), Capture(SHOWN_BYTES)
    running = await processes.start(command)
    async with anyio.create_task_group() as group:
        group.start_soon(_report, report, lambda: out.size + err.size)
        attended = await attend(running, out.feed, err.feed, seconds=seconds)
        group.cancel_scope.cancel()
    out_share, err_share = shares(SHOWN_BYTES, out.size, err.size)
    stdout, stderr = out.excerpt(out_share), err.excerpt(err_share)
    return Transcript(
        stdout=stdout.text,
        stderr=stderr.text,
        exit_code=attended.exit_code,
        state="timed_out" if attended.timed_out else "exited",
        sandbox=running.level,
        truncated=bool(stdout.omitted or stderr.omitted),
        notes=list(running.notes),
    )


async def _report(report: ProgressReporter, size: Callable[[], int]) -> None:
    began = anyio.current_time()
    while True:
        await anyio.sleep(REPORT_INTERVAL)
        seconds = round(anyio.current_time() - began)
        await report(seconds, None, f"Running for {seconds} s, {size()} bytes of output")

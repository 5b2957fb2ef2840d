"""What a program wrote and how it ended, as tools return it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import anyio

from tools.core.model import ToolModel
from tools.sandbox.processes.launching.program import communicate
from tools.sandbox.processes.models import Command, Level
from tools.sandbox.processes.output import Capture, shares

if TYPE_CHECKING:
    from tools.core.context import ProgressReporter
    from tools.sandbox.processes.processes import Processes

__all__ = ["MOST_SECONDS", "State", "Transcript", "run_to_completion", "visible_controls"]

State = Literal["exited", "timed_out", "running"]

MOST_SECONDS = 3_600
"""Seconds that a call may wait for its program."""

SHOWN_BYTES = 22_000
"""Of output and errors together: the text for the model holds it whole."""

REPORT_INTERVAL = 1.0
"""Seconds between two progress reports."""

_PICTURES = {code: 0x2400 + code for code in range(0x20) if code not in b"\t\n"}
_PICTURES |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)
"""Control characters, and the symbols that Unicode has for them."""


class Transcript(ToolModel):
    """What a program wrote, and how it ended.

    Attributes:
        stdout: What it wrote; of a long output the beginning and the end.
        stderr: What it wrote as errors; the same.
        exit_code: As a shell has it (128 and its number for a signal); null while it runs.
        state: Whether it ended by itself, was ended at its deadline, or runs in the background.
        sandbox: What confined it.
        truncated: Whether something of its output is left out.
        notes: What else to know.
    """

    stdout: str
    stderr: str
    exit_code: int | None
    state: State
    sandbox: Level
    truncated: bool
    notes: list[str]

    def to_text(self) -> str:
        """Returns a line that says how it ended, the notes, its output, then its errors."""
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


def visible_controls(text: str) -> str:
    """Replaces control characters, which could steer a terminal, by their symbols."""
    return text.replace("\r\n", "\n").translate(_PICTURES)


async def run_to_completion(
    processes: Processes, command: Command, *, seconds: float, report: ProgressReporter
) -> Transcript:
    """Runs a program to its end.

    However this returns, also by being cancelled, nothing of the program is left.

    Args:
        processes: Starts it.
        command: What to run.
        seconds: How long it may take; it is ended then.
        report: Called about once a second while it runs.

    Raises:
        ToolError: It cannot be started as required.
    """
    out, err = Capture(SHOWN_BYTES), Capture(SHOWN_BYTES)
    running = await processes.start(command)
    async with anyio.create_task_group() as group:
        group.start_soon(_report, report, lambda: out.size + err.size)
        completed = await communicate(running, out.feed, err.feed, seconds=seconds)
        group.cancel_scope.cancel()
    out_share, err_share = shares(SHOWN_BYTES, out.size, err.size)
    stdout, stderr = out.excerpt(out_share), err.excerpt(err_share)
    return Transcript(
        stdout=stdout.text,
        stderr=stderr.text,
        exit_code=completed.exit_code,
        state="timed_out" if completed.timed_out else "exited",
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

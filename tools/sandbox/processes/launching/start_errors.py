"""The errors that callers get of failed starts, by the step that failed."""

from __future__ import annotations

import errno
import os

from tools.core.errors import (
    InvalidArgumentsError,
    NotFoundError,
    PermissionDeniedError,
    ToolError,
    UnavailableError,
)
from tools.sandbox.processes.launching.messages import Step
from tools.sandbox.processes.models import Prepared

__all__ = ["start_error"]

_NOT_THERE = {errno.ENOENT, errno.ENOTDIR}
_FORBIDDEN = {errno.EACCES, errno.EPERM}


def start_error(prepared: Prepared, step: int, code: int) -> ToolError:
    """Returns the error of a failed start.

    Args:
        prepared: The program.
        step: The `Step` that failed.
        code: Its error number (errno).
    """
    reason = os.strerror(code)
    if step == Step.EXECUTE:
        return _execute_error(prepared.argv[0], code)
    if step == Step.DIRECTORY:
        text = f"The program cannot start in {prepared.cwd}: {reason}."
        if code in _NOT_THERE:
            return NotFoundError(text)
        return PermissionDeniedError(text) if code in _FORBIDDEN else UnavailableError(text)
    if step == Step.LIMITS and code == errno.ENOMEM:
        text = "The limit on memory leaves no room to start a program: raise system.memory_mb."
        return UnavailableError(text)
    doing = {
        Step.LANDLOCK: "Landlock did not confine the program",
        Step.FILTER: "The program's system calls could not be filtered",
        Step.PRIVILEGES: "The program's privileges could not be dropped",
    }.get(Step(step), "The program could not be started")
    return UnavailableError(f"{doing}: {reason}. It was not run.")


def _execute_error(program: str, code: int) -> ToolError:
    if code in _NOT_THERE:
        return NotFoundError(
            f"There is no program {program}, or the interpreter that its first line names is not"
            " there."
        )
    if code in _FORBIDDEN:
        return PermissionDeniedError(f"{program} may not be executed here.")
    if code == errno.E2BIG:
        return InvalidArgumentsError(
            "The arguments and the environment are too long for the system: hand large data over"
            " in a file or on standard input."
        )
    if code == errno.ENOEXEC:
        return InvalidArgumentsError(
            f"{program} is no program: a script needs a first line that names its interpreter."
        )
    return UnavailableError(f"{program} could not be executed: {os.strerror(code)}.")

"""What a zygote is given with a start: the order, and files in memory."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import ExitStack

from tools.core.errors import InvalidArgumentsError, UnavailableError
from tools.sandbox.processes.launching.wire import MOST_DESCRIPTORS, Order
from tools.sandbox.processes.models import Prepared

__all__ = ["kept_in_memory", "packed_order"]

_MOST_FILES = MOST_DESCRIPTORS - 5


def packed_order(prepared: Prepared) -> bytes:
    """A command as the zygote takes it.

    Raises:
        InvalidArgumentsError: No program can be given that.
        UnavailableError: The system is Windows.
    """
    if sys.platform == "win32":
        raise UnavailableError("Programs cannot be started on Windows.")
    if len(prepared.files) > _MOST_FILES:
        raise InvalidArgumentsError(
            f"{len(prepared.files)} open files are too many for one program: {_MOST_FILES} at most."
        )
    for name in prepared.environment:
        if not name or "=" in name:
            raise InvalidArgumentsError(f"{name!r} cannot be the name of a variable.")
    rules, limits = prepared.landlock, prepared.limits
    return Order(
        argv=_encoded(prepared.argv),
        environment=dict(_encoded(variable) for variable in prepared.environment.items()),  # type: ignore[misc]  # pairs stay pairs
        cwd=_encoded([prepared.cwd])[0],
        readable=_encoded(rules.readable) if rules else (),
        writable=_encoded(rules.writable) if rules else (),
        limits=(limits.cpu_seconds, limits.memory_bytes, limits.processes, limits.file_bytes),
        scratch=_encoded([prepared.scratch])[0],
    ).pack()


def kept_in_memory(contents: Sequence[bytes], stack: ExitStack) -> list[int]:
    """Files that hold the contents and that nobody can change; empty ones are /dev/null.

    Args:
        contents: What is in each.
        stack: Closes the descriptors.
    """
    return [_kept(content, stack) for content in contents]


def _encoded(texts: Iterable[str]) -> tuple[bytes, ...]:
    encoded = []
    for text in texts:
        if "\0" in text:
            raise InvalidArgumentsError(f"No program can be given a NUL character: {text!r}.")
        try:
            encoded.append(os.fsencode(text))
        except UnicodeEncodeError:
            raise InvalidArgumentsError(f"No program can be given {text!r}.") from None
    return tuple(encoded)


def _kept(content: bytes, stack: ExitStack) -> int:
    if not content:
        fd = os.open(os.devnull, os.O_RDONLY)
        stack.callback(os.close, fd)
        return fd
    if not hasattr(os, "memfd_create"):
        return _kept_on_disk(content, stack)
    import fcntl  # noqa: PLC0415  # Windows has none

    fd = os.memfd_create("toolcrib", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    stack.callback(os.close, fd)
    _write(fd, content)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def _kept_on_disk(content: bytes, stack: ExitStack) -> int:
    """A file without a name, opened for reading only."""
    with tempfile.NamedTemporaryFile() as file:
        _write(file.fileno(), content)
        fd = os.open(file.name, os.O_RDONLY)
    stack.callback(os.close, fd)
    return fd


def _write(fd: int, content: bytes) -> None:
    """Writes to the beginning of a file, whose position stays there."""
    done = 0
    with memoryview(content) as view:
        while done < len(content):
            done += os.pwrite(fd, view[done:], done)

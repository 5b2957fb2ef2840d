"""Messages between the launcher and the processes that start programs.

A start is one byte with descriptors on the zygote's socket: a socket for this program, its order,
standard output, standard error, standard input, files and namespaces. On the program's socket the
supervisor sends fixed-size reports. The launcher sends nothing, and shuts down its side to end the
program. Both ends run the same interpreter, so orders are `marshal` data. Zygotes load this module,
so it imports little.
"""

from __future__ import annotations

import marshal
import os
import socket
import struct
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from tools.core.errors import InvalidArgumentsError, UnavailableError

if TYPE_CHECKING:
    from tools.sandbox.processes.models import Prepared

_MOST_DESCRIPTORS = 253  # limit on the descriptors in one message (SCM_MAX_FD, unix(7))

_MOST_FILES = _MOST_DESCRIPTORS - 8


class Order(NamedTuple):
    """What to start: a `Prepared` as plain data, without what is sent as a descriptor."""

    argv: tuple[bytes, ...]
    environment: dict[bytes, bytes]
    cwd: bytes
    readable: tuple[bytes, ...]  # paths that may be read and executed, if Landlock confines it
    writable: tuple[bytes, ...]
    # CPU seconds, processes, file size, descriptors; 0 means no limit.
    limits: tuple[int, int, int, int]
    memory: int  # bytes of memory for the program and its descendants; 0 means no limit
    scratch: bytes
    namespaces: int  # how many of its last descriptors are namespaces to join

    @classmethod
    def of(cls, prepared: Prepared) -> Order:
        """Converts a prepared program to an order."""
        if sys.platform == "win32":
            raise UnavailableError("Programs cannot be started on Windows.")
        if len(prepared.files) > _MOST_FILES:
            raise InvalidArgumentsError(
                f"{len(prepared.files)} open files are too many for one program:"
                f" {_MOST_FILES} at most."
            )
        for name in prepared.environment:
            if not name or "=" in name:
                raise InvalidArgumentsError(f"{name!r} cannot be the name of a variable.")
        rules, limits = prepared.landlock, prepared.limits
        names, values = _encode(prepared.environment), _encode(prepared.environment.values())
        return cls(
            argv=_encode(prepared.argv),
            environment=dict(zip(names, values, strict=True)),
            cwd=_encode([prepared.cwd])[0],
            readable=_encode(rules.readable) if rules else (),
            writable=_encode(rules.writable) if rules else (),
            limits=(limits.cpu_seconds, limits.processes, limits.file_bytes, limits.descriptors),
            memory=limits.memory_bytes,
            scratch=_encode([prepared.scratch])[0],
            namespaces=len(prepared.namespaces),
        )

    def pack(self) -> bytes:
        """Serializes the order."""
        return marshal.dumps(tuple(self))

    @classmethod
    def read(cls, fd: int) -> Order:
        """Reads an order from a file."""
        return cls.unpack(os.pread(fd, os.fstat(fd).st_size, 0))

    @classmethod
    def unpack(cls, data: bytes) -> Order:
        """Deserializes the result of `pack`."""
        return cls(*marshal.loads(data))  # noqa: S302  # written by the launcher; no program can


class Step(IntEnum):
    """The steps of a start, in order; a failed start names its step."""

    RECEIVE = 0
    NAMESPACES = 1
    DESCRIPTORS = 2
    DIRECTORY = 3
    LIMITS = 4
    PRIVILEGES = 5
    LANDLOCK = 6
    FILTER = 7
    EXECUTE = 8


class ReportKind(IntEnum):
    """The event that a supervisor reports."""

    STARTED = 1
    FAILED = 2
    ENDED = 3


class EndReason(IntEnum):
    """Why a supervisor killed a program on its own."""

    NONE = 0
    MEMORY = 1
    MACHINE_MEMORY = 2
    PROCESSES = 3


class Report(NamedTuple):
    """A report of a supervisor to the launcher."""

    kind: int
    # STARTED: the program's process id. FAILED: the step. ENDED: the exit code.
    value: int
    # FAILED: the error number (errno). ENDED: the `EndReason`.
    code: int = 0

    def pack(self) -> bytes:
        """Serializes the report to `REPORT_SIZE` bytes."""
        return _REPORT.pack(*self)

    @classmethod
    def unpack(cls, data: bytes) -> Report:
        """Deserializes the result of `pack`."""
        return cls(*_REPORT.unpack(data))


_REPORT = struct.Struct("=iii")
REPORT_SIZE = _REPORT.size


def send_descriptors(channel: socket.socket, message: bytes, descriptors: Sequence[int]) -> None:
    """Sends a message with descriptors."""
    # socket.send_fds() would import a module in every forked process.
    packed = b"".join(map(_DESCRIPTOR.pack, descriptors))
    channel.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)])


def receive_descriptors(channel: socket.socket, size: int) -> tuple[bytes, Sequence[int]]:
    """Receives a message with descriptors, which programs do not inherit."""
    # socket.recv_fds() in Python 3.11 does not pass on flags.
    space = socket.CMSG_SPACE(_MOST_DESCRIPTORS * _DESCRIPTOR.size)
    data, ancillary, _, _ = channel.recvmsg(size, space, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    descriptors = [
        fd
        for level, kind, content in ancillary
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
        for (fd,) in _DESCRIPTOR.iter_unpack(content)
    ]
    if not hasattr(socket, "MSG_CMSG_CLOEXEC"):
        for fd in descriptors:
            os.set_inheritable(fd, False)  # noqa: FBT003  # it takes no keyword
    return data, descriptors


_DESCRIPTOR = struct.Struct("=i")


def memory_files(contents: Sequence[bytes], stack: ExitStack) -> list[int]:
    """Creates immutable files with the contents; for empty ones uses /dev/null.

    `stack`: closes the descriptors.
    """
    return [_memory_file(content, stack) for content in contents]


def _encode(texts: Iterable[str]) -> tuple[bytes, ...]:
    encoded = []
    for text in texts:
        if "\0" in text:
            raise InvalidArgumentsError(f"No program can be given a NUL character: {text!r}.")
        try:
            encoded.append(os.fsencode(text))
        except UnicodeEncodeError:
            raise InvalidArgumentsError(f"No program can be given {text!r}.") from None
    return tuple(encoded)


def _memory_file(content: bytes, stack: ExitStack) -> int:
    if not content:
        fd = os.open(os.devnull, os.O_RDONLY)
        stack.callback(os.close, fd)
        return fd
    if not hasattr(os, "memfd_create"):
        return _unnamed_file(content, stack)
    import fcntl  # Windows has none

    fd = os.memfd_create("toolcrib", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    stack.callback(os.close, fd)
    _write(fd, content)
    seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def _unnamed_file(content: bytes, stack: ExitStack) -> int:
    import tempfile  # not loaded in zygotes

    with tempfile.NamedTemporaryFile() as file:
        _write(file.fileno(), content)
        fd = os.open(file.name, os.O_RDONLY)
    stack.callback(os.close, fd)
    return fd


def _write(fd: int, content: bytes) -> None:
    done = 0
    with memoryview(content) as view:
        while done < len(content):
            done += os.pwrite(fd, view[done:], done)

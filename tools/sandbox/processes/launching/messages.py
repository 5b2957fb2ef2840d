"""The messages between the launcher and the processes that start programs.

A start is one byte with descriptors on the zygote's socket: a socket for this program alone, and
its order, standard output, standard error, standard input, files and namespaces. On the program's
own socket its supervisor sends reports of a fixed size; the launcher sends nothing, and shuts its
side down to have the program ended. Both ends are the same interpreter, so an order is `marshal`
data. Zygotes load this module: it imports little.
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

_MOST_DESCRIPTORS = 253
"""Descriptors in one message (SCM_MAX_FD, unix(7))."""

_MOST_FILES = _MOST_DESCRIPTORS - 8


class Order(NamedTuple):
    """What is started; a `Prepared` as plain data, without what is sent as a descriptor.

    Attributes:
        argv: The program by its absolute path, and its arguments.
        environment: All of its variables.
        cwd: Where it starts.
        readable: Paths that may be read and executed, where Landlock confines it.
        writable: Paths that may also be written.
        limits: CPU seconds, processes, bytes of a file, descriptors; 0 sets none.
        memory: Bytes of memory of the program and all that it starts; 0 sets no limit.
        scratch: The directory that is removed in the end; empty for none.
        namespaces: How many of its descriptors, the last ones, are namespaces that it joins.
    """

    argv: tuple[bytes, ...]
    environment: dict[bytes, bytes]
    cwd: bytes
    readable: tuple[bytes, ...]
    writable: tuple[bytes, ...]
    limits: tuple[int, int, int, int]
    memory: int
    scratch: bytes
    namespaces: int

    @classmethod
    def of(cls, prepared: Prepared) -> Order:
        """Returns the order that starts a program."""
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
        names, values = _encoded(prepared.environment), _encoded(prepared.environment.values())
        return cls(
            argv=_encoded(prepared.argv),
            environment=dict(zip(names, values, strict=True)),
            cwd=_encoded([prepared.cwd])[0],
            readable=_encoded(rules.readable) if rules else (),
            writable=_encoded(rules.writable) if rules else (),
            limits=(
                limits.cpu_seconds,
                limits.processes,
                limits.file_bytes,
                limits.descriptors,
            ),
            memory=limits.memory_bytes,
            scratch=_encoded([prepared.scratch])[0],
            namespaces=len(prepared.namespaces),
        )

    def pack(self) -> bytes:
        """Returns the order as bytes."""
        return marshal.dumps(tuple(self))

    @classmethod
    def read(cls, fd: int) -> Order:
        """Reads the order that a file holds."""
        return cls.unpack(os.pread(fd, os.fstat(fd).st_size, 0))

    @classmethod
    def unpack(cls, data: bytes) -> Order:
        """Returns the order that `pack` made."""
        return cls(*marshal.loads(data))  # noqa: S302  # the launcher wrote it; no program can


class Step(IntEnum):
    """The steps of a start, in their order; a failed start names the step."""

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
    """What a supervisor reports on."""

    STARTED = 1
    FAILED = 2
    ENDED = 3


class EndReason(IntEnum):
    """Why a supervisor ended a program of its own accord."""

    NONE = 0
    MEMORY = 1
    MACHINE_MEMORY = 2
    PROCESSES = 3


class Report(NamedTuple):
    """A report of a supervisor to the launcher.

    Attributes:
        kind: What happened.
        value: STARTED: the program's process id. FAILED: the step. ENDED: the exit code.
        code: FAILED: the error number (errno). ENDED: the `EndReason`.
    """

    kind: int
    value: int
    code: int = 0

    def pack(self) -> bytes:
        """Returns the report as `REPORT_SIZE` bytes."""
        return _REPORT.pack(*self)

    @classmethod
    def unpack(cls, data: bytes) -> Report:
        """Returns the report that `pack` made."""
        return cls(*_REPORT.unpack(data))


_REPORT = struct.Struct("=iii")
REPORT_SIZE = _REPORT.size


def send_descriptors(channel: socket.socket, message: bytes, descriptors: Sequence[int]) -> None:
    """Sends one message and descriptors with it.

    Raises:
        OSError: The other end is gone, or the system refuses.
    """
    # socket.send_fds() would import a module in every process that is forked.
    packed = b"".join(map(_DESCRIPTOR.pack, descriptors))
    channel.sendmsg([message], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)])


def receive_descriptors(channel: socket.socket, size: int) -> tuple[bytes, Sequence[int]]:
    """Receives one message and the descriptors in it, which programs do not inherit.

    Args:
        channel: A Unix socket.
        size: Bytes of the message at most.

    Raises:
        OSError: The other end is gone.
    """
    # socket.recv_fds() of Python 3.11 does not pass flags on.
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
    """Makes files that hold the contents and cannot be changed; empty ones are /dev/null.

    Args:
        contents: The content of each.
        stack: Closes the descriptors.

    Returns:
        Their descriptors.
    """
    return [_memory_file(content, stack) for content in contents]


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
    import tempfile  # zygotes do without

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

"""What the launcher and the processes that start programs say to each other.

A start is one byte with descriptors on the zygote's socket: a socket for this program alone, and
its order, standard output, standard error, standard input and files. On the program's own socket
its supervisor sends reports of a fixed size; the launcher says one thing, by shutting its side
down: end it. Both ends are the same interpreter, so an order is `marshal` data.
"""

from __future__ import annotations

import marshal
import os
import socket
import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

__all__ = [
    "MOST_DESCRIPTORS",
    "REPORT_SIZE",
    "Order",
    "Report",
    "ReportKind",
    "Step",
    "receive_descriptors",
    "send_descriptors",
]

MOST_DESCRIPTORS = 253
"""Descriptors in one message (SCM_MAX_FD, unix(7))."""


class Order(NamedTuple):
    """What is started; a `Prepared` as plain data, without what is sent as a descriptor.

    Attributes:
        argv: The program by its absolute path, and its arguments.
        environment: All of its variables.
        cwd: Where it starts.
        readable: Paths that may be read and executed, where Landlock confines it.
        writable: Paths that may also be written.
        limits: CPU seconds, bytes of memory, processes, bytes of a file; 0 sets none.
        scratch: The directory that is removed in the end; empty for none.
    """

    argv: tuple[bytes, ...]
    environment: dict[bytes, bytes]
    cwd: bytes
    readable: tuple[bytes, ...]
    writable: tuple[bytes, ...]
    limits: tuple[int, int, int, int]
    scratch: bytes

    def pack(self) -> bytes:
        """The order as bytes."""
        return marshal.dumps(tuple(self))

    @classmethod
    def read(cls, fd: int) -> Order:
        """The order that a file holds from its beginning on."""
        return cls.unpack(os.pread(fd, os.fstat(fd).st_size, 0))

    @classmethod
    def unpack(cls, data: bytes) -> Order:
        """The order that `pack` made."""
        # The launcher wrote it; no program that it starts can.
        return cls(*marshal.loads(data))  # noqa: S302  # our own data


class Step(IntEnum):
    """What a start does one after the other; a failed start names the step."""

    RECEIVE = 0
    DESCRIPTORS = 1
    DIRECTORY = 2
    LIMITS = 3
    PRIVILEGES = 4
    LANDLOCK = 5
    FILTER = 6
    EXECUTE = 7


class ReportKind(IntEnum):
    """What a supervisor reports."""

    STARTED = 1
    FAILED = 2
    ENDED = 3


class Report(NamedTuple):
    """What a supervisor tells the launcher.

    Attributes:
        kind: What happened.
        value: STARTED: the program's process id. FAILED: the step. ENDED: the exit code.
        code: FAILED: the error number (errno).
    """

    kind: int
    value: int
    code: int = 0

    def pack(self) -> bytes:
        """The report as `REPORT_SIZE` bytes."""
        return _REPORT.pack(*self)

    @classmethod
    def unpack(cls, data: bytes) -> Report:
        """The report that `pack` made."""
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
    space = socket.CMSG_SPACE(MOST_DESCRIPTORS * _DESCRIPTOR.size)
    data, ancillary, _, _ = channel.recvmsg(size, space, getattr(socket, "MSG_CMSG_CLOEXEC", 0))
    descriptors = [
        fd
        for level, kind, content in ancillary
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS)
        for (fd,) in _DESCRIPTOR.iter_unpack(content)
    ]
    if not hasattr(socket, "MSG_CMSG_CLOEXEC"):
        for fd in descriptors:
            os.set_inheritable(fd, False)  # noqa: FBT003  # the standard library has it so
    return data, descriptors


_DESCRIPTOR = struct.Struct("=i")

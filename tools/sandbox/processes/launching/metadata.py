"""Changes permissions, owners and times of files for a program, in its supervisor.

Landlock does not cover chmod(2), chown(2), utimensat(2) and the like, which would reach all of the
user's files. The filter suspends the program at such a call and asks here (seccomp_unotify(2)). The
path is read from the program's memory once and resolved here. The file found is held by a
descriptor, checked to be where the program may write, and changed through that descriptor. The
program's own call never continues, so changing the path meanwhile has no effect.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import stat
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from typing import NamedTuple

from tools.sandbox.processes.kernel.syscalls import NUMBERS, syscall

# struct seccomp_notif and seccomp_notif_resp, and their requests (linux/seccomp.h).
_QUESTION = struct.Struct("=QIIiIQ6Q")
_ANSWER = struct.Struct("=Qqii")
_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102

_NO_MAGIC_LINKS = 0x02
_AT_FDCWD, _AT_SYMLINK_NOFOLLOW, _AT_EMPTY_PATH = -100, 0x100, 0x1000
_PATH_MAX = 4096
_RIGHTS = 0o1777
_KEEP_ID = 0xFFFFFFFF

_OWN_DESCRIPTORS = (b"/proc/self/fd/", b"/proc/thread-self/fd/", b"/dev/fd/")
"""Paths by which programs name their open files."""

_Arguments = Sequence[int]


class MetadataChanges:
    """Answers the questions of a filter about calls that change files below some paths."""

    def __init__(self, listener: int, writable: Sequence[bytes]) -> None:
        self.listener = listener
        self._tops = writable

    def answer(self) -> None:
        """Answers one question."""
        buffer = bytearray(_QUESTION.size)
        with suppress(FileNotFoundError):  # the program has ended meanwhile
            fcntl.ioctl(self.listener, _RECEIVE, buffer)
            question, thread, _, number, _, _, *arguments = _QUESTION.unpack(buffer)
            code = self._code(question, thread, number, arguments)
            fcntl.ioctl(self.listener, _SEND, _ANSWER.pack(question, 0, -code, 0))

    def _code(self, question: int, thread: int, number: int, arguments: _Arguments) -> int:
        """Makes the requested change; returns the error number, or 0."""
        shape = _shapes()[number]
        try:
            with ExitStack() as opened:
                call = _Call(thread, arguments, opened)
                target = shape.find(call)
                change = shape.change(call, target)
                self._check(target)
                # While it waits for the answer, its thread ID cannot be reused.
                fcntl.ioctl(self.listener, _IS_VALID, question.to_bytes(8, "little"))
                change(b"/proc/self/fd/%d" % target)
        except OSError as error:
            return error.errno or errno.EPERM
        except (ArithmeticError, ValueError, struct.error):  # arguments out of range
            return errno.EINVAL
        return 0

    def _check(self, target: int) -> None:
        """Raises an error if the target is a device, or outside the writable paths."""
        actual = os.readlink(b"/proc/self/fd/%d" % target)  # noqa: PTH115  # names are bytes
        mode = os.fstat(target).st_mode
        if (
            stat.S_ISCHR(mode)
            or stat.S_ISBLK(mode)
            or not any(
                actual == top or actual.startswith(top.rstrip(b"/") + b"/") for top in self._tops
            )
        ):
            raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))


_Change = Callable[[bytes], object]  # changes what is open at a path in /proc/self/fd


class _Call:
    """A suspended call: its arguments, as the program sees them."""

    def __init__(self, thread: int, arguments: _Arguments, opened: ExitStack) -> None:
        self._thread = thread
        self._arguments = arguments
        self._opened = opened

    def number(self, index: int) -> int:
        """Returns an unsigned 32-bit argument."""
        return self._arguments[index] & 0xFFFFFFFF

    def descriptor(self, index: int) -> int:
        """Returns an argument that is a descriptor."""
        value = self.number(index)
        return value - (1 << 32) if value >= 1 << 31 else value

    def memory(self, index: int, size: int) -> bytes | None:
        """Reads the memory at an argument; None for a null pointer."""
        address = self._arguments[index]
        if not address:
            return None
        memory = self._open(b"/proc/%d/mem" % self._thread, os.O_RDONLY)
        try:
            return os.pread(memory, size, address)
        except (OSError, OverflowError):
            raise _error(errno.EFAULT) from None

    def path(self, index: int) -> bytes | None:
        """Reads the path at an argument; None for a null pointer."""
        content = self.memory(index, _PATH_MAX)
        if content is None:
            return None
        path, end, _ = content.partition(b"\0")
        if not end:
            raise _error(errno.ENAMETOOLONG)
        return path

    def open_file(self, descriptor: int) -> int:
        """Opens one of the program's open files, or its working directory."""
        name = b"cwd" if descriptor == _AT_FDCWD else b"fd/%d" % descriptor
        try:
            return self._open(b"/proc/%d/%s" % (self._thread, name), os.O_PATH)
        except FileNotFoundError:
            raise _error(errno.EBADF) from None

    def resolved(self, directory: int, path: bytes, *, follow: bool) -> int:
        """Opens the target of a path, as the program would."""
        folder, _, name = path.rpartition(b"/")
        if follow and folder + b"/" in _OWN_DESCRIPTORS and name.isdigit():
            return self.open_file(int(name))
        start = _AT_FDCWD if path.startswith(b"/") else self.open_file(directory)
        flags = os.O_PATH | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
        # Other magic links in /proc would refer to the supervisor.
        how = struct.pack("=QQQ", flags, 0, _NO_MAGIC_LINKS)
        target = syscall(NUMBERS[os.uname().machine]["openat2"], start, path, how, len(how))
        self._opened.callback(os.close, target)
        return target

    def _open(self, path: bytes, flags: int) -> int:
        fd = os.open(path, flags | os.O_CLOEXEC)
        self._opened.callback(os.close, fd)
        return fd


def _error(code: int) -> OSError:
    return OSError(code, os.strerror(code))


def _mode(index: int) -> Callable[[_Call, int], _Change]:
    """Returns a function that sets the mode in an argument; links have none."""

    def change(call: _Call, target: int) -> _Change:
        mode = call.number(index) & _RIGHTS
        if stat.S_ISLNK(os.fstat(target).st_mode):
            raise _error(errno.EOPNOTSUPP)
        return lambda path: os.chmod(path, mode)  # noqa: PTH101  # names are bytes

    return change


def _owner(index: int) -> Callable[[_Call, int], _Change]:
    """Returns a function that sets the owner and group in two arguments."""

    def change(call: _Call, _target: int) -> _Change:
        ids = (call.number(index), call.number(index + 1))
        user, group = (-1 if number == _KEEP_ID else number for number in ids)
        return lambda path: os.chown(path, user, group)

    return change


def _times(index: int, layout: str, nanoseconds: int) -> Callable[[_Call, int], _Change]:
    """Returns a function that sets the times at an argument, or the current time.

    `layout`: seconds and fractions of both times, or `qq` for seconds only.
    `nanoseconds`: the unit of the fractions; 0 for none.
    """

    def change(call: _Call, _target: int) -> _Change:
        given = call.memory(index, struct.calcsize(layout))
        times: bytes | int = 0
        if given is not None:
            values = struct.unpack(layout, given)
            seconds, fractions = (values[::2], values[1::2]) if nanoseconds else (values, (0, 0))
            times = b"".join(
                struct.pack("=qq", second, fraction * nanoseconds)
                for second, fraction in zip(seconds, fractions, strict=True)
            )
        number = NUMBERS[os.uname().machine]["utimensat"]
        return lambda path: syscall(number, _AT_FDCWD, path, times, 0)

    return change


class _Shape(NamedTuple):
    """The positions of the arguments of a system call."""

    change: Callable[[_Call, int], _Change]
    # The argument that relative paths start at, or that is the open file itself; None for the
    # working directory.
    directory: int | None = None
    path: int | None = None
    flags: int | None = None
    follow: bool = True
    pathless: bool = False  # whether a missing path means the open file itself

    def find(self, call: _Call) -> int:
        """Opens the target of the call; returns the descriptor."""
        directory = _AT_FDCWD if self.directory is None else call.descriptor(self.directory)
        if self.path is None:
            return call.open_file(directory)
        flags = 0 if self.flags is None else call.number(self.flags)
        if flags & ~(_AT_SYMLINK_NOFOLLOW | _AT_EMPTY_PATH):
            raise _error(errno.EINVAL)
        path = call.path(self.path)
        if path is None and not self.pathless:
            raise _error(errno.EFAULT)
        if path is None or (not path and flags & _AT_EMPTY_PATH):
            return call.open_file(directory)
        follow = self.follow and not flags & _AT_SYMLINK_NOFOLLOW
        return call.resolved(directory, path, follow=follow)


_SHAPES: Mapping[str, _Shape] = {
    "chmod": _Shape(_mode(1), path=0),
    "fchmod": _Shape(_mode(1), directory=0),
    "fchmodat": _Shape(_mode(2), directory=0, path=1),
    "fchmodat2": _Shape(_mode(2), directory=0, path=1, flags=3),
    "chown": _Shape(_owner(1), path=0),
    "lchown": _Shape(_owner(1), path=0, follow=False),
    "fchown": _Shape(_owner(1), directory=0),
    "fchownat": _Shape(_owner(2), directory=0, path=1, flags=4),
    "utime": _Shape(_times(1, "=qq", 0), path=0),
    "utimes": _Shape(_times(1, "=qqqq", 1000), path=0),
    "futimesat": _Shape(_times(2, "=qqqq", 1000), directory=0, path=1, pathless=True),
    "utimensat": _Shape(_times(2, "=qqqq", 1), directory=0, path=1, flags=3, pathless=True),
}
"""The calls that a filter asks about (`seccomp`)."""


@functools.cache
def _shapes() -> Mapping[int, _Shape]:
    numbers = NUMBERS[os.uname().machine]
    return {numbers[name]: shape for name, shape in _SHAPES.items() if name in numbers}

"""Opens directories and files inside a root, resolving the path while opening.

With `openat2`, the kernel resolves the path itself and refuses to leave the root
(`RESOLVE_BENEATH`, openat2(2)). Everywhere else, and for absolute links that point back inside,
this module walks the path one component at a time on directory descriptors. Neither way looks
anything up twice, so no link can be swapped in between a check and an opening.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import stat
import sys
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Self

from tools.core.errors import UnavailableError

MAX_LINKS = 40  # limit on the symbolic links in a path, as in Linux
MAX_DEPTH = 256  # limit on the directories in a path, which a walk holds open
OPEN_DIRECTORY = (
    getattr(os, "O_PATH", os.O_RDONLY) | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
)
"""Flags that open a directory; with O_PATH, listing permission is not needed."""

_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | _NOFOLLOW
_DIRECTORY = _READ | getattr(os, "O_DIRECTORY", 0)
_FILE = _READ | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_CHUNK_BYTES = 1 << 20

# From linux/openat2.h and asm-generic/unistd.h; the number is the same on all architectures
# supported by Python.
_SYS_OPENAT2 = 437
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_BENEATH = 0x08


class Root(NamedTuple):
    """An open root.

    Absolute paths and links inside one of its `spellings`, absolute paths of the directory, are
    taken as relative to the root.
    """

    fd: int
    spellings: tuple[str, ...]


DirectoryOpener = Callable[[Root, str], int]
"""Opens a directory by its path relative to a root; raises OSError, EXDEV if it is outside."""


class HeldRoot:
    """Pins a root to one directory, even if its path is later redirected.

    The descriptor stays open, so that no other directory gets the same inode number.

    `expected` is the required device and inode; None accepts any.
    """

    def __init__(self, path: str, expected: tuple[int, int] | None = None) -> None:
        self.path = path
        self._expected = expected
        self._fd = -1
        if os.path.isdir(path):  # noqa: PTH112  # the other raises where it may not look
            self.descriptor()

    def descriptor(self) -> int:
        """Returns the descriptor, even if the path now leads elsewhere."""
        if self._fd < 0:
            try:
                fd = os.open(self.path, OPEN_DIRECTORY)
            except OSError as error:
                raise self._missing(error) from error
            weakref.finalize(self, os.close, fd)
            self._fd, self._expected = fd, self._expected or identity(os.fstat(fd))
        return self._fd

    def check(self) -> int:
        """Returns the descriptor; raises an error unless the path still leads to the directory."""
        fd = self.descriptor()
        try:
            found = identity(os.stat(self.path))  # noqa: PTH116  # called on every read
        except OSError as error:
            raise self._missing(error) from error
        if found != self._expected:
            raise UnavailableError(
                f"The root {self.path!r} was replaced while the server ran; nothing was done.",
                next_actions=[
                    (
                        "Ask the user to put the directory back, or to restart the server to work"
                        " in the new one."
                    )
                ],
            )
        return fd

    def way_in(self) -> str:
        """Returns a path to start a program in, which on Linux no replacement redirects."""
        fd = self.check()
        return f"/proc/self/fd/{fd}" if hasattr(os, "O_PATH") else self.path

    def _missing(self, error: OSError) -> UnavailableError:
        return UnavailableError(
            f"The root {self.path!r} cannot be opened: {error.strerror}.",
            next_actions=[
                (
                    "Ask the user to put the directory back, or to configure another root and"
                    " restart the server."
                )
            ],
        )


class _OpenHow(ctypes.Structure):
    """`struct open_how` of openat2(2)."""

    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


def open_beneath(root: Root, path: str) -> int:
    """Opens a directory inside a root; the caller closes the descriptor.

    The path may contain `..` and links that stay inside; raises EXDEV if it leads outside.
    """
    if path in {"", "."}:
        return os.dup(root.fd)
    if _kernel_resolves():
        try:
            return _openat2(root.fd, path)
        except OSError as error:
            # The walk handles what the kernel refuses outright: absolute links that point back
            # inside (EXDEV), a rename during `..` (EAGAIN), magic links (ELOOP).
            if error.errno not in {errno.EXDEV, errno.EAGAIN, errno.ELOOP}:
                raise
    return walk_beneath(root, path)


def strip_root(path: str, spellings: Sequence[str]) -> str:
    """Returns the part of an absolute path below a root, without resolving links.

    Raises EXDEV if the path is below none of the spellings.
    """
    for spelling in spellings:
        prefix = spelling.rstrip("/") + "/"
        if f"{path}/".startswith(prefix):
            return path.removeprefix(prefix.rstrip("/")).lstrip("/") or "."
    raise _leaves_the_root()


def path_of(fd: int) -> str:
    """Returns the real absolute path of an open directory, according to the system.

    Raises ENOTSUP if the system cannot report it.
    """
    if sys.platform == "darwin":
        import fcntl  # not on Windows

        return os.fsdecode(fcntl.fcntl(fd, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))
    try:
        return os.readlink(f"/proc/self/fd/{fd}")  # noqa: PTH115  # called on every read
    except FileNotFoundError:
        raise OSError(errno.ENOTSUP, "the system does not say where a directory is") from None


def path_beneath(root: Root, directory: int) -> str:
    """Returns the real current path of an open directory relative to the root.

    Raises EXDEV if it is outside the root now, and ENOTSUP if the system cannot report it.
    """
    top, here = path_of(root.fd), path_of(directory)
    return "." if here == top else strip_root(here, (top,))


def walk_beneath(root: Root, path: str) -> int:
    """Opens a directory inside a root component by component; like `open_beneath`."""
    opened = [os.dup(root.fd)]
    pending = path.split("/")[::-1]
    links = 0
    try:
        while pending:
            part = pending.pop()
            if part in {"", "."}:
                continue
            if part == "..":  # back to the previous directory, even if this one was moved
                if len(opened) == 1:
                    raise _leaves_the_root()
                os.close(opened.pop())
                continue
            target = _descend(opened, part)
            if target is None:
                continue
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            if target.startswith("/"):
                target = strip_root(target, root.spellings)
                while len(opened) > 1:
                    os.close(opened.pop())
            pending.extend(target.split("/")[::-1])
        return opened.pop()
    finally:
        for fd in opened:
            os.close(fd)


def identity(status: os.stat_result) -> tuple[int, int]:
    """Returns the device and inode, which identify a file or directory."""
    return status.st_dev, status.st_ino


def _descend(opened: list[int], part: str) -> str | None:
    """Opens one component, or returns the target if it is a link."""
    if len(opened) > MAX_DEPTH:
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
    try:
        opened.append(os.open(part, OPEN_DIRECTORY | _NOFOLLOW, dir_fd=opened[-1]))
    except OSError as error:
        if error.errno not in {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}:
            raise
        try:
            return os.readlink(part, dir_fd=opened[-1])
        except OSError as link_error:
            if link_error.errno == errno.EINVAL:
                raise error from None
            raise
    return None


def _leaves_the_root() -> OSError:
    return OSError(errno.EXDEV, "the path leads out of the root")


@functools.cache
def _kernel_resolves() -> bool:
    """Returns whether openat2 works: Linux 5.6 or later, and no filter forbids it."""
    if not hasattr(os, "O_PATH"):
        return False
    fd = os.open("/", OPEN_DIRECTORY)
    try:
        os.close(_openat2(fd, "."))
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(fd)


@functools.cache
def _syscall() -> Callable[..., int]:
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    function.argtypes = (
        ctypes.c_long,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.POINTER(_OpenHow),
        ctypes.c_size_t,
    )
    return function


_HOW = _OpenHow(OPEN_DIRECTORY, 0, _RESOLVE_BENEATH | _RESOLVE_NO_MAGICLINKS)
_HOW_BYTES = ctypes.sizeof(_OpenHow)


def _openat2(directory: int, path: str) -> int:
    name = os.fsencode(path)
    call = _syscall()
    while True:
        fd = call(_SYS_OPENAT2, directory, name, _HOW, _HOW_BYTES)
        if fd >= 0:
            return fd
        code = ctypes.get_errno()
        if code != errno.EINTR:
            raise OSError(code, os.strerror(code), path)


def open_below(directory: int, names: Iterable[str] = ()) -> int:
    """Opens a directory for reading its entries.

    Raises ELOOP or ENOTDIR for a link on the way.
    """
    fd = os.open(".", _DIRECTORY, dir_fd=directory)
    try:
        for name in names:
            below = open_name(fd, name)
            os.close(fd)
            fd = below
    except OSError:
        os.close(fd)
        raise
    return fd


def open_name(directory: int, name: str) -> int:
    """Opens a directory inside an open one for reading its entries.

    Raises ELOOP or ENOTDIR for a link.
    """
    return os.open(name, _DIRECTORY, dir_fd=directory)


class Descent:
    """Opens the directories of a walk, each from the nearest one still open."""

    def __init__(self, root: int, open_name: Callable[[int, str], int] = open_name) -> None:
        self._open_name = open_name
        self._opened = [("", open_below(root))]
        """The root and the open directories below it, with their names."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._close(0)

    def open(self, path: str) -> int:
        """Opens a directory, which stays open until the next call."""
        parts = path.split("/") if path else []
        shared = 0
        for (name, _), part in zip(self._opened[1:], parts, strict=False):
            if name != part:
                break
            shared += 1
        self._close(1 + shared)
        for part in parts[shared:]:
            self._opened.append((part, self._open_name(self._opened[-1][1], part)))
        return self._opened[-1][1]

    def _close(self, kept: int) -> None:
        while len(self._opened) > kept:
            os.close(self._opened.pop()[1])


def open_file(name: str, directory: int) -> tuple[int, os.stat_result]:
    """Opens a regular file and returns its descriptor and status; never blocks on pipes or devices.

    Raises ELOOP for a link, and ENXIO for anything but a regular file.
    """
    fd = os.open(name, _FILE, dir_fd=directory)
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        os.close(fd)
        raise OSError(errno.ENXIO, "not a regular file")
    return fd, status


def read_up_to(fd: int, count: int, size: int) -> bytes:
    """Returns the first `count` bytes of an open file.

    `size` is its size when opened; it may have grown.
    """
    chunks = list[bytes]()
    found, asked = 0, min(size + 1, count)  # one more than its size, to see the end at once
    while asked > 0 and (chunk := os.read(fd, asked)):
        chunks.append(chunk)
        found += len(chunk)
        if len(chunk) < asked and found >= size > 0:  # files in /proc report size 0
            break
        asked = min(_CHUNK_BYTES, count - found)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)

"""Landlock: access rights of a process, enforced by the kernel (Linux 5.13 and later).

Everything that the kernel's ABI can restrict is restricted: files outside the allowed paths, TCP
except in a namespace without a route (ABI 4), and abstract Unix sockets and signals to outside
processes (ABI 6). `seccomp` handles the rest: permissions and times of files by path, UDP, and
sockets with a path. Rights and structures are from linux/landlock.h.
"""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import stat
import struct
from collections.abc import Iterable

from tools.sandbox.processes.kernel.syscalls import syscall

SCOPES_SIGNALS = 6  # first ABI that restricts signals (Linux 6.12)

# The numbers are the same on every architecture.
_SYS_CREATE_RULESET = 444
_SYS_ADD_RULE = 445
_SYS_RESTRICT_SELF = 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_REFER = 1 << 13
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_RIGHTS_OF_ABI = (0, 13, 14, 15, 15, 16)  # number of file system rights by ABI; 16 since ABI 5

_NET_ABI, _NET_RIGHTS = 4, 0b11  # bind and connect TCP
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 0b01, 0b10

_Identity = tuple[int, int]  # device and inode

_DEVICES = (b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/random", b"/dev/urandom")


@functools.cache
def landlock_abi() -> int:
    """Returns the kernel's Landlock ABI; 0 if missing or disabled."""
    if not hasattr(os, "O_PATH"):  # not Linux
        return 0
    try:
        return syscall(_SYS_CREATE_RULESET, 0, 0, _CREATE_RULESET_VERSION)
    except OSError:
        return 0


class PathRules:
    """A ruleset that restricts everything the kernel can, except for some paths.

    Missing paths are skipped. `networked` leaves TCP unrestricted, in a namespace without a route.
    """

    def __init__(self, readable: Iterable[bytes], *, networked: bool = False) -> None:
        abi = landlock_abi()
        if not abi:
            raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
        self._rights = (1 << _RIGHTS_OF_ABI[min(abi, len(_RIGHTS_OF_ABI) - 1)]) - 1
        scopes = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if abi >= SCOPES_SIGNALS else 0
        self._networked = networked
        tcp = _NET_RIGHTS if abi >= _NET_ABI and not networked else 0
        self._fd = _create(self._rights, tcp, scopes)
        self._readable = {
            path: _add_rule(self._fd, path, _READ_FILE | _READ_DIR | _EXECUTE) for path in readable
        }
        for path in _DEVICES:
            _add_rule(self._fd, path, _READ_FILE | _WRITE_FILE)

    def are_of(self, readable: Iterable[bytes], *, networked: bool) -> bool:
        """Returns whether the rules still match these paths; a path may have been replaced."""
        return self._networked == networked and self._readable == {
            path: _identity(path) for path in readable
        }

    def move_above(self, lowest: int) -> None:
        """Moves its descriptor to a free number, at or above the lowest."""
        moved = fcntl.fcntl(self._fd, fcntl.F_DUPFD_CLOEXEC, lowest)
        os.close(self._fd)
        self._fd = moved

    def allow_writes(self, writable: Iterable[bytes]) -> None:
        """Adds paths where everything but creating devices is allowed."""
        for path in writable:
            _add_rule(self._fd, path, self._rights & ~(_MAKE_CHAR | _MAKE_BLOCK))

    def enter(self) -> None:
        """Applies the rules to this process and its children, permanently.

        Needs `PR_SET_NO_NEW_PRIVS` or CAP_SYS_ADMIN.
        """
        _enter(self._fd)


def keep_signals_inside(*, below_others: bool) -> None:
    """Restricts signals to this process and its children, permanently.

    Needs `PR_SET_NO_NEW_PRIVS` or CAP_SYS_ADMIN.

    Args:
        below_others: Whether path rules will follow. Within those, a ruleset that does not mention
            moving files between directories forbids it; one that mentions files at all forbids
            mounts, which bubblewrap needs.
    """
    ruleset = _create(_REFER if below_others else 0, 0, _SCOPE_SIGNALS)
    try:
        if below_others:
            _add_rule(ruleset, b"/", _REFER)
        _enter(ruleset)
    finally:
        os.close(ruleset)


def _add_rule(ruleset: int, path: bytes, rights: int) -> _Identity | None:
    """Adds a rule; returns the file's identity, which stays valid as long as the rule exists."""
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # missing, or hidden from this user: there is nothing to allow
        return None
    try:
        status = os.fstat(fd)
        if not stat.S_ISDIR(status.st_mode):
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, fd)
        syscall(_SYS_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(fd)
    return status.st_dev, status.st_ino


def _enter(ruleset: int) -> None:
    syscall(_SYS_RESTRICT_SELF, ruleset, 0)


def _create(rights: int, net_rights: int, scopes: int) -> int:
    # Kernels reject unknown fields unless they are 0, so trailing ones are left out.
    attributes = struct.pack("=QQQ", rights, net_rights, scopes)
    size = 24 if scopes else 16 if net_rights else 8
    return syscall(_SYS_CREATE_RULESET, attributes, size, 0)


def _identity(path: bytes) -> _Identity | None:
    try:
        status = os.stat(path)  # noqa: PTH116  # names are bytes
    except OSError:
        return None
    return status.st_dev, status.st_ino

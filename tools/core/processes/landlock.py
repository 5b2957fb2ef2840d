"""Landlock: what a process may touch, enforced by the kernel (Linux 5.13 and later).

Everything that the kernel's ABI can restrict is restricted: access to files beneath the rules
only, no TCP (ABI 4), no abstract Unix sockets and no signals to processes outside (ABI 6). What it
does not cover (rights and times of files by path, UDP, sockets with a path) is for `seccomp`.
Rights and structures are those of linux/landlock.h.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
import struct
from collections.abc import Iterable

from tools.core.processes.kernel import syscall

__all__ = ["SCOPES_SIGNALS", "enter", "landlock_abi", "path_rules", "signal_scope"]

SCOPES_SIGNALS = 6
"""First ABI that keeps signals inside (Linux 6.12)."""

# The numbers are the same on every architecture.
_SYS_CREATE_RULESET = 444
_SYS_ADD_RULE = 445
_SYS_RESTRICT_SELF = 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = (1 << bit for bit in range(4))
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_RIGHTS_OF_ABI = (0, 13, 14, 15, 15, 16)
"""How many rights the file system has by ABI; since 5 they are 16."""

_NET_ABI, _NET_RIGHTS = 4, 0b11  # bind and connect TCP
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 0b01, 0b10

_DEVICES = (b"/dev/null", b"/dev/zero", b"/dev/full", b"/dev/random", b"/dev/urandom")


@functools.cache
def landlock_abi() -> int:
    """The kernel's Landlock ABI; 0 where it has none, or has it switched off."""
    if not hasattr(os, "O_PATH"):  # not Linux
        return 0
    try:
        return syscall(_SYS_CREATE_RULESET, 0, 0, _CREATE_RULESET_VERSION)
    except OSError:
        return 0


def path_rules(readable: Iterable[bytes], writable: Iterable[bytes]) -> int:
    """A ruleset that restricts all that the kernel can, as a descriptor for `enter`.

    Args:
        readable: Paths that may be read and executed, with what is beneath them.
        writable: Paths where everything is allowed but making devices.

    Raises:
        OSError: The kernel has no Landlock, or refuses.
    """
    abi = landlock_abi()
    if not abi:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    rights = (1 << _RIGHTS_OF_ABI[min(abi, len(_RIGHTS_OF_ABI) - 1)]) - 1
    scopes = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if abi >= SCOPES_SIGNALS else 0
    ruleset = _create(rights, _NET_RIGHTS if abi >= _NET_ABI else 0, scopes)
    try:
        for path in readable:
            _allow(ruleset, path, _READ_FILE | _READ_DIR | _EXECUTE)
        for path in writable:
            _allow(ruleset, path, rights & ~(_MAKE_CHAR | _MAKE_BLOCK))
        for path in _DEVICES:
            _allow(ruleset, path, _READ_FILE | _WRITE_FILE)
    except OSError:
        os.close(ruleset)
        raise
    return ruleset


def signal_scope() -> int:
    """A ruleset that only keeps signals inside, as a descriptor for `enter`.

    Raises:
        OSError: The kernel's ABI is below `SCOPES_SIGNALS`.
    """
    return _create(0, 0, _SCOPE_SIGNALS)


def enter(ruleset: int) -> None:
    """Puts this process, and all that it starts, under a ruleset for good.

    It needs `PR_SET_NO_NEW_PRIVS` or CAP_SYS_ADMIN.

    Raises:
        OSError: The kernel refuses.
    """
    syscall(_SYS_RESTRICT_SELF, ruleset, 0)


def _create(rights: int, net_rights: int, scopes: int) -> int:
    # Kernels refuse fields that they do not know unless they are 0; trailing ones are left out.
    attributes = struct.pack("=QQQ", rights, net_rights, scopes)
    size = 24 if scopes else 16 if net_rights else 8
    return syscall(_SYS_CREATE_RULESET, attributes, size, 0)


def _allow(ruleset: int, path: bytes, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # missing, or hidden from this user: there is nothing to allow
        return
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _FILE_RIGHTS
        syscall(_SYS_ADD_RULE, ruleset, _RULE_PATH_BENEATH, struct.pack("=Qi", rights, fd), 0)
    finally:
        os.close(fd)

"""System call filters (seccomp(2)): refuse calls that agents' programs do not need.

The filters refuse tracing, mounting, namespaces, modules, keys, io_uring and other ways around the
confinement, sockets that leave it, set-user-ID bits, and everything on other architectures or newer
than this table. With Landlock only, they also cover its gaps: shared memory and message queues of
the user's other programs; and permissions, owners and times of files, which the supervisor handles
(`metadata`). ENOSYS makes programs fall back to another call; otherwise they get EPERM.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Mapping

from tools.core.errors import UnavailableError
from tools.sandbox.processes.kernel.landlock import landlock_abi
from tools.sandbox.processes.kernel.syscalls import (
    ARCHITECTURE,
    LAST_KNOWN,
    NUMBER,
    NUMBERS,
    Block,
    answer,
    argument,
    assembled,
    dispatch,
    if_any_bit,
    if_field,
    if_one_of,
    skip,
    syscall,
    unless_above,
)

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_* of linux/audit.h
_SET_MODE_FILTER = 1
_NEW_LISTENER, _WAIT_KILLABLE = 1 << 3, 1 << 5

_ALLOW = answer(0x7FFF0000)
_ASK = answer(0x7FC00000)  # SECCOMP_RET_USER_NOTIF
_KILL = answer(0x80000000)  # SECCOMP_RET_KILL_PROCESS


def _refuse(code: int) -> Block:
    return answer(0x00050000 | code)  # SECCOMP_RET_ERRNO


_EPERM, _ENOSYS = _refuse(errno.EPERM), _refuse(errno.ENOSYS)
_ENOTSUP = _refuse(errno.ENOTSUP)
_EINVAL = _refuse(errno.EINVAL)
_IGNORE = _refuse(0)

_REFUSED = (
    # Other processes.
    *("ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd"),
    # Namespaces and mounts.
    *("chroot", "fsconfig", "fsmount", "fsopen", "fspick", "mount", "mount_setattr"),
    *("move_mount", "open_tree", "open_tree_attr", "pivot_root", "setns", "umount2"),
    # The kernel and the machine.
    *("acct", "adjtimex", "bpf", "clock_adjtime", "clock_settime", "delete_module"),
    *("finit_module", "init_module", "ioperm", "iopl", "kexec_file_load", "kexec_load"),
    *("migrate_pages", "modify_ldt", "move_pages", "perf_event_open", "quotactl"),
    *("quotactl_fd", "reboot", "setdomainname", "sethostname", "settimeofday", "swapoff"),
    *("swapon", "syslog", "uselib", "userfaultfd", "vhangup"),
    # Keys; files past the rules about paths.
    *("add_key", "keyctl", "request_key", "fanotify_init", "fanotify_mark"),
    *("open_by_handle_at", "io_uring_enter", "io_uring_register", "io_uring_setup"),
)
_UNKNOWN = ("clone3", "openat2")
"""Their arguments are in memory, invisible to filters; all programs have a fallback."""

_BORROWING = ("splice", "tee", "vmsplice")
"""Calls that put pages into pipes and sockets while only some bytes are counted."""

_SOL_SOCKET, _BUFFER_SIZES = 1, (7, 8, 32, 33)
"""SO_SNDBUF and SO_RCVBUF and their forced variants: all sockets keep the system's buffers."""

_LARGE_SEGMENT = 0xFFFF0000
_MANY_SEMAPHORES = 0xFFFFFFE0
"""Bits of sizes that would be too large, if no process is charged for them."""

_SHARED = (
    *("mq_notify", "mq_open", "mq_timedreceive", "mq_timedsend", "mq_unlink"),
    *("msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop", "semtimedop"),
    *("shmat", "shmctl", "shmdt", "shmget"),
)
"""Ways for programs of one user to share data without files."""

_ATTRIBUTES = (
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat", "removexattr", "lremovexattr"),
    *("fremovexattr", "removexattrat", "file_setattr"),
    *("getxattr", "lgetxattr", "fgetxattr", "getxattrat", "listxattr", "llistxattr"),
    *("flistxattr", "listxattrat", "file_getattr"),
)
_METADATA = (
    *("chmod", "chown", "fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "futimesat"),
    *("lchown", "utime", "utimensat", "utimes"),
)
"""Calls that change a file without opening it for writing."""

_MODES = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1}
_MODES |= {"mknod": 1, "mknodat": 2}
"""The index of the mode argument."""

_SIGNALLING = ("kill", "tgkill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_open")

_NEW_NAMESPACES = 0x7E020000  # CLONE_NEW* of linux/sched.h but CLONE_NEWTIME
_NEW_TIME_NAMESPACE = 0x80
_CREATES = os.O_CREAT | 0o20000000  # __O_TMPFILE
_SET_ID = 0o6000

_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_NETLINK_ROUTE, _NETLINK_SOCK_DIAG = 0, 4
_SOCK_KINDS, _SOCK_STREAM, _SOCK_SEQPACKET = 0xF, 1, 5

_IOCTLS = (
    *(0x5412, 0x541C),  # TIOCSTI, TIOCLINUX: input for another user's terminal
    *(0x8901, 0x8902),  # FIOSETOWN, SIOCSPGRP: signals for others
    # Changes through read-only descriptors: FS_IOC_SETFLAGS in both sizes, SETVERSION and
    # FSSETXATTR; ENABLE_VERITY and SET_ENCRYPTION_POLICY; encryption keys, added and removed.
    *(0x40086602, 0x40046602, 0x40087602, 0x401C5820, 0x40806685, 0x800C6613),
    *(0xC0506617, 0xC0406618, 0xC0406619),
)
_BTRFS = 0x94
_BTRFS_CLONES = (0x40049409, 0x4020940D, 0xC0189436)  # FICLONE, FICLONERANGE, FIDEDUPERANGE
_COVERS_TRUNCATE = 3

_FCNTLS = (8, 15, 1024)
"""F_SETOWN, F_SETOWN_EX: recipients of signals; F_SETLEASE: delays others' opens."""


def filter_program(*, landlocked: bool) -> bytes:
    """Returns the filter as bytes, also for `bwrap --seccomp`.

    Args:
        landlocked: Whether Landlock confines the program; `sealing` then completes the filter once
            the network is joined. Otherwise namespaces do: a separate network with internet and
            Unix sockets, separate shared memory, and no foreign files to change.
    """
    machine = os.uname().machine
    if machine not in NUMBERS:
        raise UnavailableError(f"System calls of {machine} cannot be filtered.")
    rules = {**_everywhere(), **(_landlocked() if landlocked else _namespaced())}
    numbers = NUMBERS[machine]
    known = {numbers[name]: block for name, block in rules.items() if name in numbers}
    # Also refuses the x32 calls of x86_64, whose numbers start at 2^30.
    judge = unless_above(LAST_KNOWN, dispatch(known, _ALLOW), _ENOSYS)
    return assembled(if_one_of(ARCHITECTURE, [_ARCHITECTURES[machine]], judge, _KILL))


def protecting(program: bytes, processes: Iterable[int]) -> bytes:
    """Extends a filter to refuse signals to some processes, and to all processes at once.

    Needed before ABI 6 of Landlock, which does the same. The IDs are those that the program sees.
    """
    numbers = NUMBERS[os.uname().machine]
    signalling = [numbers[name] for name in _SIGNALLING]
    forbidden = [-1, *(sign * pid for pid in processes for sign in (1, -1))]
    check = if_one_of(argument(0), forbidden, _EPERM, skip(_EPERM))
    return assembled(if_one_of(NUMBER, signalling, check, skip(check))) + program


def sealing(*, networked: bool) -> bytes:
    """Returns a filter that completes one for Landlock: it forbids joining namespaces.

    Args:
        networked: Whether the program has joined a network without a route, where it may use
            sockets; otherwise it may not.
    """
    numbers = NUMBERS[os.uname().machine]
    refused = ["setns"] if networked else ["setns", "socket"]
    return assembled(if_one_of(NUMBER, [numbers[each] for each in refused], _EPERM, _ALLOW))


def add(program: bytes) -> None:
    """Adds a filter, as `install` does; the strictest answer wins."""
    _set_filter(program, 0)


def install(program: bytes) -> int:
    """Filters the system calls of this process and its children, permanently.

    Needs `PR_SET_NO_NEW_PRIVS`. Returns the descriptor for the filter's questions; once it is
    closed, calls that the filter asks about fail with ENOSYS.
    """
    try:  # only fatal signals interrupt a waiting call (Linux 5.19)
        return _set_filter(program, _NEW_LISTENER | _WAIT_KILLABLE)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return _set_filter(program, _NEW_LISTENER)


def _set_filter(program: bytes, flags: int) -> int:
    instructions = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(instructions))
    number = NUMBERS[os.uname().machine]["seccomp"]
    return syscall(number, _SET_MODE_FILTER, flags, described)


def _everywhere() -> Mapping[str, Block]:
    of_itself = _if_zero(0, _ALLOW, _EPERM)
    sizes = if_one_of(argument(2), _BUFFER_SIZES, _IGNORE, _ALLOW)
    return {
        **dict.fromkeys(_REFUSED, _EPERM),
        **dict.fromkeys(_UNKNOWN, _ENOSYS),
        **dict.fromkeys(_BORROWING, _EINVAL),
        "setsockopt": if_one_of(argument(1), [_SOL_SOCKET], sizes, _ALLOW),
        **{name: _unless_set_id(index, _ALLOW) for name, index in _MODES.items()},
        "open": _unless_creating(1, 2),
        "openat": _unless_creating(2, 3),
        "clone": if_any_bit(argument(0), _NEW_NAMESPACES, _EPERM, _ALLOW),
        "unshare": if_any_bit(argument(0), _NEW_NAMESPACES | _NEW_TIME_NAMESPACE, _EPERM, _ALLOW),
        "fcntl": if_one_of(argument(1), _FCNTLS, _EPERM, _ALLOW),
        "ioctl": if_one_of(argument(1), _IOCTLS, _EPERM, _unless_btrfs()),
        "personality": if_one_of(argument(0), [0, 0xFFFFFFFF], _ALLOW, _EPERM),
        # A second listener would intercept the questions of the first.
        "seccomp": if_any_bit(argument(1), _NEW_LISTENER, _EPERM, _ALLOW),
        # Limits and priorities of the user's other processes may be read, not set.
        "prlimit64": _if_zero(0, _ALLOW, _if_zero(2, _ALLOW, _EPERM)),
        "setpriority": _if_own(0, 1),  # PRIO_PROCESS, PRIO_PGRP
        "ioprio_set": _if_own(1, 2),  # IOPRIO_WHO_PROCESS, IOPRIO_WHO_PGRP
        **dict.fromkeys(("sched_setattr", "sched_setparam", "sched_setscheduler"), of_itself),
    }


def _landlocked() -> Mapping[str, Block]:
    """Returns further rules for programs that share the system with all others."""
    return {
        **dict.fromkeys(_SHARED, _EPERM),
        **dict.fromkeys(_ATTRIBUTES, _ENOTSUP),
        **{
            name: _unless_set_id(_MODES[name], _ASK) if name in _MODES else _ASK
            for name in _METADATA
        },
        "pidfd_send_signal": _ENOSYS,  # filters cannot see which process a descriptor is for
        "setns": _ALLOW,  # until it is sealed
        "socket": _sockets(),
        "open": _unless_unasked(1, 2),
        "openat": _unless_unasked(2, 3),
        # Landlock covers it since ABI 3.
        "truncate": _ALLOW if landlock_abi() >= _COVERS_TRUNCATE else _EPERM,
        "socketpair": _pairs(),
        "inotify_add_watch": _EPERM,  # would reveal names in all of the user's directories
        "sched_setaffinity": _if_zero(0, _ALLOW, _EPERM),
    }


def _namespaced() -> Mapping[str, Block]:
    small = if_any_bit(argument(1), _LARGE_SEGMENT, _EINVAL, _ALLOW)
    return {
        "socket": _sockets(_AF_UNIX),
        "socketpair": _pairs(),
        # These allocate kernel memory that no process is charged for.
        "msgget": _ENOSYS,
        "semget": if_any_bit(argument(1), _MANY_SEMAPHORES, _EINVAL, _ALLOW),
        "shmget": if_one_of(argument(1, high=True), [0], small, _EINVAL),
    }


def _sockets(*families: int) -> Block:
    """Allows sockets of some families, and netlink for the network namespace only."""
    told = [_NETLINK_ROUTE, _NETLINK_SOCK_DIAG]  # others report on the machine, such as devices
    netlink = if_one_of(argument(2), told, _ALLOW, _EPERM)
    others = if_one_of(argument(0), [_AF_NETLINK], netlink, _EPERM)
    return if_one_of(argument(0), [*families, _AF_INET, _AF_INET6], _ALLOW, others)


def _pairs() -> Block:
    """Allows connected pairs: datagram sockets could send to any other socket with a path."""
    connected: Block = _EPERM
    for kind in (_SOCK_STREAM, _SOCK_SEQPACKET):
        connected = if_field(argument(1), _SOCK_KINDS, kind, _ALLOW, connected)
    return if_one_of(argument(0), [_AF_UNIX], connected, _EPERM)


def _if_zero(index: int, then: Block, otherwise: Block) -> Block:
    """Branches on whether an argument is 0, as a pointer or 64-bit number."""
    lower = if_one_of(argument(index), [0], then, otherwise)
    return if_one_of(argument(index, high=True), [0], lower, otherwise)


def _if_own(process: int, group: int) -> Block:
    """Branches on whether the target is the caller or its group, written as 0."""
    own = _if_zero(1, _ALLOW, _EPERM)
    return if_one_of(argument(0), [process, group], own, _EPERM)


def _unless_set_id(index: int, then: Block) -> Block:
    return if_any_bit(argument(index), _SET_ID, _EPERM, then)


def _unless_creating(flags: int, mode: int) -> Block:
    return if_any_bit(argument(flags), _CREATES, _unless_set_id(mode, _ALLOW), _ALLOW)


def _unless_unasked(flags: int, mode: int) -> Block:
    """Refuses opens for neither reading nor writing, for which Landlock needs no right (open(2)).

    Before ABI 3, the same goes for truncating a file that is opened for reading.
    """
    block = _unless_creating(flags, mode)
    if landlock_abi() < _COVERS_TRUNCATE:
        emptied = os.O_ACCMODE | os.O_TRUNC
        block = if_field(argument(flags), emptied, os.O_RDONLY | os.O_TRUNC, _EPERM, block)
    return if_field(argument(flags), os.O_ACCMODE, os.O_ACCMODE, _EPERM, block)


def _unless_btrfs() -> Block:
    """Refuses btrfs requests that change subvolumes through read-only descriptors."""
    clones = if_one_of(argument(1), _BTRFS_CLONES, _ALLOW, _EPERM)
    return if_field(argument(1), 0xFF00, _BTRFS << 8, clones, _ALLOW)

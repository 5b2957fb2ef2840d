"""System calls by number, and filters that decide on them (seccomp(2)); Linux only.

The numbers are from linux/arch/x86/entry/syscalls/syscall_64.tbl and
include/uapi/asm-generic/unistd.h; calls added after Linux 5.1 have the same number everywhere.

Filters are programs of the classic Berkeley Packet Filter. A block is a list of instructions that
always returns. Blocks are built from smaller ones, so every jump goes forward, over blocks of known
length. Zygotes load this module, so it imports little.
"""

from __future__ import annotations

import ctypes
import functools
import os
import struct
from collections.abc import Callable, Mapping, Sequence

LAST_KNOWN = 469  # the last system call reviewed: file_setattr of Linux 6.17

_X86_64_AND_AARCH64: Sequence[tuple[str, int, int | None]] = (
    *(("acct", 163, 89), ("add_key", 248, 217), ("adjtimex", 159, 171), ("bpf", 321, 280)),
    *(("chmod", 90, None), ("chown", 92, None), ("chroot", 161, 51)),
    *(("clock_adjtime", 305, 266), ("clock_settime", 227, 112), ("clone", 56, 220)),
    *(("clone3", 435, 435), ("creat", 85, None), ("delete_module", 176, 106)),
    *(("fanotify_init", 300, 262), ("fanotify_mark", 301, 263), ("fchmod", 91, 52)),
    *(("fchmodat", 268, 53), ("fchmodat2", 452, 452), ("fchown", 93, 55)),
    *(("fchownat", 260, 54), ("fcntl", 72, 25), ("fgetxattr", 193, 10)),
    *(("file_getattr", 468, 468), ("file_setattr", 469, 469), ("finit_module", 313, 273)),
    *(("flistxattr", 196, 13), ("fremovexattr", 199, 16), ("fsconfig", 431, 431)),
    *(("fsetxattr", 190, 7), ("fsmount", 432, 432), ("fsopen", 430, 430), ("fspick", 433, 433)),
    *(("futimesat", 261, None), ("getxattr", 191, 8), ("getxattrat", 464, 464)),
    *(("init_module", 175, 105), ("inotify_add_watch", 254, 27), ("io_uring_enter", 426, 426)),
    *(("io_uring_register", 427, 427), ("io_uring_setup", 425, 425), ("ioctl", 16, 29)),
    *(("ioperm", 173, None), ("iopl", 172, None), ("ioprio_set", 251, 30), ("kcmp", 312, 272)),
    *(("kexec_file_load", 320, 294), ("kexec_load", 246, 104), ("keyctl", 250, 219)),
    *(("kill", 62, 129), ("lchown", 94, None), ("lgetxattr", 192, 9), ("listxattr", 194, 11)),
    *(("listxattrat", 465, 465), ("llistxattr", 195, 12), ("lremovexattr", 198, 15)),
    *(("lsetxattr", 189, 6), ("migrate_pages", 256, 238), ("mknod", 133, None)),
    *(("mknodat", 259, 33), ("modify_ldt", 154, None), ("mount", 165, 40)),
    *(("mount_setattr", 442, 442), ("move_mount", 429, 429), ("move_pages", 279, 239)),
    *(("mq_notify", 244, 184), ("mq_open", 240, 180), ("mq_timedreceive", 243, 183)),
    *(("mq_timedsend", 242, 182), ("mq_unlink", 241, 181), ("msgctl", 71, 187)),
    *(("msgget", 68, 186), ("msgrcv", 70, 188), ("msgsnd", 69, 189), ("open", 2, None)),
    *(("open_by_handle_at", 304, 265), ("open_tree", 428, 428), ("open_tree_attr", 467, 467)),
    *(("openat", 257, 56), ("openat2", 437, 437), ("perf_event_open", 298, 241)),
    *(("personality", 135, 92), ("pidfd_getfd", 438, 438), ("pidfd_open", 434, 434)),
    *(("pidfd_send_signal", 424, 424), ("pivot_root", 155, 41), ("prlimit64", 302, 261)),
    *(("process_vm_readv", 310, 270), ("process_vm_writev", 311, 271), ("ptrace", 101, 117)),
    *(("quotactl", 179, 60), ("quotactl_fd", 443, 443), ("reboot", 169, 142)),
    *(("removexattr", 197, 14), ("removexattrat", 466, 466), ("request_key", 249, 218)),
    *(("rt_sigqueueinfo", 129, 138), ("rt_tgsigqueueinfo", 297, 240)),
    *(("sched_setaffinity", 203, 122), ("sched_setattr", 314, 274)),
    *(("sched_setparam", 142, 118), ("sched_setscheduler", 144, 119), ("seccomp", 317, 277)),
    *(("semctl", 66, 191), ("semget", 64, 190), ("semop", 65, 193), ("semtimedop", 220, 192)),
    *(("setdomainname", 171, 162), ("sethostname", 170, 161), ("setns", 308, 268)),
    *(("setpriority", 141, 140), ("setsockopt", 54, 208), ("settimeofday", 164, 170)),
    *(("setxattr", 188, 5), ("setxattrat", 463, 463), ("shmat", 30, 196), ("shmctl", 31, 195)),
    *(("shmdt", 67, 197), ("shmget", 29, 194), ("socket", 41, 198), ("socketpair", 53, 199)),
    *(("splice", 275, 76), ("swapoff", 168, 225), ("swapon", 167, 224), ("syslog", 103, 116)),
    *(("tee", 276, 77), ("tgkill", 234, 131), ("tkill", 200, 130), ("truncate", 76, 45)),
    *(("umount2", 166, 39), ("unshare", 272, 97), ("uselib", 134, None)),
    *(("userfaultfd", 323, 282), ("utime", 132, None), ("utimensat", 280, 88)),
    *(("utimes", 235, None), ("vhangup", 153, 58), ("vmsplice", 278, 75)),
)

NUMBERS: Mapping[str, Mapping[str, int]] = {
    "x86_64": {name: number for name, number, _ in _X86_64_AND_AARCH64},
    "aarch64": {name: number for name, _, number in _X86_64_AND_AARCH64 if number is not None},
}
"""By machine name (uname(2)) and system call; aarch64 lacks the oldest ones."""


def syscall(number: int, *arguments: int | bytes) -> int:
    """Makes one system call.

    `*arguments`: numbers, or bytes passed by address.
    """
    return _checked(_libc().syscall, number, *arguments)


def prctl(option: int, value: int) -> None:
    """Sets one option of this process; otherwise like `syscall`."""
    _checked(_libc().prctl, option, value, 0, 0, 0)


def _checked(function: Callable[..., int], *arguments: int | bytes) -> int:
    converted = [
        ctypes.c_char_p(value) if isinstance(value, bytes) else ctypes.c_long(value)
        for value in arguments
    ]
    answer = function(*converted)
    if answer == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return answer


@functools.cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


Instruction = tuple[int, int, int, int]
"""Code, jump if true, jump if false, operand: struct sock_filter of linux/filter.h."""

Block = Sequence[Instruction]

# Offsets of the fields of struct seccomp_data (linux/seccomp.h).
NUMBER, ARCHITECTURE = 0, 4

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND = 0x54  # BPF_ALU | BPF_AND | BPF_K
_JUMP = 0x05  # BPF_JMP | BPF_JA
_IF_EQUAL, _IF_GREATER, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x25, 0x35, 0x45
_RETURN = 0x06  # BPF_RET | BPF_K

_FARTHEST = 255  # maximum number of instructions that a condition can jump over


def argument(index: int, *, high: bool = False) -> int:
    """Returns the offset of the lower or the higher half of an argument, little-endian."""
    return 16 + 8 * index + (4 if high else 0)


def answer(action: int) -> Block:
    """Returns from the program with an action."""
    return [(_RETURN, 0, 0, action)]


def if_one_of(offset: int, values: Sequence[int], then: Block, otherwise: Block) -> Block:
    """Branches on whether the word at an offset is one of some values."""
    block: list[Instruction] = [(_LOAD, 0, 0, offset)]
    for after, value in zip(range(len(values) - 1, -1, -1), values, strict=True):
        over = after + len(otherwise)
        block.append((_IF_EQUAL, _near(over), 0, value & 0xFFFFFFFF))
    return [*block, *otherwise, *then]


def if_any_bit(offset: int, mask: int, then: Block, otherwise: Block) -> Block:
    """Branches on whether the word at an offset has any bit of a mask."""
    jump = (_IF_ANY_BIT, _near(len(otherwise)), 0, mask)
    return [(_LOAD, 0, 0, offset), jump, *otherwise, *then]


def if_field(offset: int, mask: int, value: int, then: Block, otherwise: Block) -> Block:
    """Branches on whether the bits of a mask, in the word at an offset, have a value."""
    jump = (_IF_EQUAL, _near(len(otherwise)), 0, value)
    return [(_LOAD, 0, 0, offset), (_AND, 0, 0, mask), jump, *otherwise, *then]


def skip(block: Block) -> Block:
    """Jumps over a block, to the instructions that follow it."""
    return [(_JUMP, 0, 0, len(block))]


def unless_above(last: int, then: Block, above: Block) -> Block:
    """Branches on whether the number of the system call is at most the last known one."""
    jump = (_IF_GREATER, 0, _near(len(above)), last)
    return [(_LOAD, 0, 0, NUMBER), jump, *above, *then]


def dispatch(blocks: Mapping[int, Block], otherwise: Block) -> Block:
    """Branches on the number of the system call, by a binary search."""
    starts: list[tuple[int, Block]] = [(0, otherwise)]
    for number, block in sorted(blocks.items()):
        if starts[-1][0] == number:
            starts.pop()
        if not starts or starts[-1][1] != block:
            starts.append((number, block))
        starts.append((number + 1, otherwise))
    return [(_LOAD, 0, 0, NUMBER), *_search(starts)]


def _search(starts: Sequence[tuple[int, Block]]) -> Block:
    """Finds the interval of the number; each ends at the start of the next."""
    if len(starts) == 1:
        return starts[0][1]
    middle = len(starts) // 2
    left, right = _search(starts[:middle]), _search(starts[middle:])
    pivot = starts[middle][0]
    if len(left) <= _FARTHEST:
        return [(_IF_AT_LEAST, len(left), 0, pivot), *left, *right]
    return [(_IF_AT_LEAST, 0, 1, pivot), (_JUMP, 0, 0, len(left)), *left, *right]


def assembled(block: Block) -> bytes:
    """Encodes a program for the kernel."""
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in block)


def _near(distance: int) -> int:
    if distance > _FARTHEST:
        raise ValueError(f"a condition cannot jump over {distance} instructions")
    return distance

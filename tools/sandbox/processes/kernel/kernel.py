"""System calls that Python has no function for; Linux only.

Used in the server and in the processes that start programs, which load nothing heavy.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable

__all__ = ["prctl", "syscall"]


def syscall(number: int, *arguments: int | bytes) -> int:
    """Makes one system call.

    Args:
        number: Its number on this architecture.
        *arguments: Numbers, or bytes that the kernel is given the address of.

    Returns:
        What the kernel answers.

    Raises:
        OSError: What the kernel refuses.
    """
    return _checked(_libc().syscall, number, *arguments)


def prctl(option: int, *arguments: int | bytes) -> int:
    """Does an operation on this process (prctl(2)); like `syscall`."""
    padding = (0,) * (4 - len(arguments))
    return _checked(_libc().prctl, option, *arguments, *padding)


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

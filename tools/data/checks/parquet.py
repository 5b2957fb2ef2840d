"""Whether a Parquet file is whole, as far as its two ends tell."""

from __future__ import annotations

import os

from tools.core.errors import InvalidArgumentsError
from tools.data.worker.agreed import AGAIN
from tools.sandbox.files.sandbox import Sandbox

_MARK = b"PAR1"
_ENDS = {_MARK, b"PARE"}
"""The latter where what describes the file is encrypted."""

_TAIL = 8
"""Bytes at its end: the length of what describes the file, and a mark."""


def check_parquet(sandbox: Sandbox, path: str) -> None:
    """Goes on where a file begins and ends as Parquet does; blocks.

    Raises:
        InvalidArgumentsError: If it does not; it says which end is wrong.
        ToolError: As the methods of Sandbox.
    """
    with sandbox.open_read(path) as file:
        begin = file.read(len(_MARK))
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - _TAIL, 0))
        length, end = file.read(_TAIL // 2), file.read(_TAIL // 2)
    if begin not in _ENDS:
        fault = f"it begins with {begin!r}, not {_MARK!r}" if size else "it is empty"
    elif end not in _ENDS or int.from_bytes(length, "little") > size - _TAIL - len(_MARK):
        fault = f"its end is missing, so it was cut off or is still being written ({size} bytes)"
    else:
        return
    raise InvalidArgumentsError(f"{path} is no whole Parquet file: {fault}.", next_actions=[AGAIN])

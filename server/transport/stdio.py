"""The client's two streams, kept away from everything else in the process."""

from __future__ import annotations

import os
import sys

from server.settings import SettingsError

__all__ = ["take_streams"]


def take_streams() -> tuple[int, int]:
    """Takes stdin and stdout for the protocol, for the rest of the process's life.

    Descriptor 0 then reads nothing and descriptor 1 is stderr, so whatever a tool, a library or a
    child process prints, even from a buffer flushed at exit, never reaches the client.

    Returns:
        The descriptors to read the client from, and to write to it.

    Raises:
        SettingsError: If the process was started without them.
    """
    # Not by trying the descriptors: where one was closed, another file may have its number by now.
    if sys.stdin is None or sys.stdout is None:
        raise SettingsError("The stdio transport needs standard input and standard output.")
    source, sink = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # started without stderr
        os.dup2(nothing, 1)
    os.close(nothing)
    return source, sink

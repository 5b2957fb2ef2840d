"""The client's two streams, kept away from everything else in the process."""

from __future__ import annotations

import io
import os
import select
import sys
from typing import Any

from server.settings import SettingsError

__all__ = ["ClientInput", "take_streams"]


class ClientInput(io.RawIOBase):
    """Bytes from the client, which end when the client closes them or when `stop` is called.

    A thread that waits in a plain read cannot be woken, and would keep the process alive.

    Args:
        descriptor: Where the bytes come from.

    Attributes:
        stopped: Whether `stop` was called.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._stopped, self._stop = os.pipe()
        self.stopped = False

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401  # typeshed's Buffer is not in Python 3.11
        """Waits for bytes and puts them into the buffer; 0 at the end."""
        ready, _, _ = select.select([self._descriptor, self._stopped], [], [])
        if self._stopped in ready:
            return 0
        return os.readv(self._descriptor, [buffer])

    def stop(self) -> None:
        """Ends the input now; safe in a signal handler."""
        self.stopped = True
        os.write(self._stop, b"\0")


def take_streams() -> tuple[ClientInput, io.TextIOWrapper]:
    """Takes stdin and stdout for the protocol, for the rest of the process's life.

    Descriptor 0 then reads nothing and descriptor 1 is stderr, so whatever a tool, a library or a
    child process prints, even from a buffer flushed at exit, never reaches the client.

    Returns:
        The client's bytes, and the text stream to the client.

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
    writer = io.TextIOWrapper(os.fdopen(sink, "wb"), encoding="utf-8", newline="\n")
    return ClientInput(source), writer

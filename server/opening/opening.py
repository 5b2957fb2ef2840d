"""Answers the first line over stdio while the rest of the product loads."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from threading import Thread
from typing import NamedTuple

from server.opening.command_line import ServeArguments
from server.opening.first_reply import NAME, FirstReply, changing_lists, reply_to

PIECE = 65_536
"""Bytes per read, and the maximum length of a first line."""

_STDIN, _STDOUT = 0, 1


class ReadAhead(NamedTuple):
    """Input read before the server started.

    Attributes:
        data: The bytes, which the server must process first.
        answered: The id of the request that was answered; None if none was.
    """

    data: bytes = b""
    answered: str | int | None = None


class Opening:
    """Reads and answers the client's first line in a separate thread.

    Args:
        answer: Returns the reply to a line; None if only the server can reply.
    """

    def __init__(self, answer: Callable[[bytes], FirstReply | None]) -> None:
        self._answer = answer
        self._data = b""
        self._request_id: str | int | None = None
        self._ended, self._end = os.pipe()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> ReadAhead:
        """Stops reading and returns the input; called once."""
        os.close(self._end)
        self._thread.join()
        os.close(self._ended)
        return ReadAhead(self._data, self._request_id)

    def _run(self) -> None:
        with suppress(OSError):  # the server gets the same error and handles it
            while b"\n" not in self._data and len(self._data) < PIECE:
                ready, _, _ = select.select([_STDIN, self._ended], [], [])
                piece = os.read(_STDIN, PIECE) if _STDIN in ready else b""
                if not piece:
                    return
                self._data += piece
            reply = self._answer(self._data.partition(b"\n")[0])
            if reply is not None:
                _write(reply.line)
                self._request_id = reply.request


def begin(served: ServeArguments, environ: Mapping[str, str]) -> Opening | None:
    """Starts to listen, if the first reply can be made before the server is ready."""
    functions = served.flags["functions.paths"] is not None
    changing = changing_lists(served.config, environ, functions=functions)
    if changing is None or not _is_program_there():
        return None
    return Opening(partial(reply_to, version=version(NAME), changing=changing))


def _is_program_there() -> bool:
    """Returns whether stdin and stdout are open, blocking and not terminals."""
    if sys.stdin is None or sys.stdout is None:
        return False
    return all(os.get_blocking(each) and not os.isatty(each) for each in (_STDIN, _STDOUT))


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(_STDOUT, data) :]

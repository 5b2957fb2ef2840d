"""The opening of a conversation over stdio: the first line is answered while the rest loads."""

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
"""Bytes that are read at once, and the most that a first line may have."""

_STDIN, _STDOUT = 0, 1


class ReadAhead(NamedTuple):
    """What the client said before the server listened.

    Attributes:
        data: All that was read, for the server to read first.
        answered: Id of the request in it that was answered; None if none was.
    """

    data: bytes = b""
    answered: str | int | None = None


class Opening:
    """Reads the first line of the client and answers it, in a thread of its own.

    Args:
        answer: Makes the reply to a line; None where only the server can.
    """

    def __init__(self, answer: Callable[[bytes], FirstReply | None]) -> None:
        self._answer = answer
        self._data = b""
        self._answered: str | int | None = None
        self._ended, self._end = os.pipe()
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> ReadAhead:
        """Stops reading, and hands over what was read; called once."""
        os.close(self._end)
        self._thread.join()
        os.close(self._ended)
        return ReadAhead(self._data, self._answered)

    def _run(self) -> None:
        with suppress(OSError):  # the server meets it too, and knows what to do
            while b"\n" not in self._data and len(self._data) < PIECE:
                ready, _, _ = select.select([_STDIN, self._ended], [], [])
                piece = os.read(_STDIN, PIECE) if _STDIN in ready else b""
                if not piece:
                    return
                self._data += piece
            reply = self._answer(self._data.partition(b"\n")[0])
            if reply is not None:
                _write(reply.line)
                self._answered = reply.request


def begin(served: ServeArguments, environ: Mapping[str, str]) -> Opening | None:
    """Begins to listen, if the reply to a client can be known before the server is there."""
    functions = served.flags["functions.paths"] is not None
    changing = changing_lists(served.config, environ, functions=functions)
    if changing is None or not _is_program_there():
        return None
    return Opening(partial(reply_to, version=version(NAME), changing=changing))


def _is_program_there() -> bool:
    """Whether both streams are open, and neither is a terminal nor set not to wait."""
    if sys.stdin is None or sys.stdout is None:
        return False
    return all(os.get_blocking(each) and not os.isatty(each) for each in (_STDIN, _STDOUT))


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(_STDOUT, data) :]

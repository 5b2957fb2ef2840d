"""Answers the first line over stdio while the rest of the product loads."""

from __future__ import annotations

import gc
import os
import select
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import NamedTuple

from server.fast_start.first_reply import NAME, FirstReply, changing_lists, reply_to

PIECE = 65_536
"""Bytes per read, and the maximum length of a first line."""

_STDIN, _STDOUT = 0, 1


class ReadAhead(NamedTuple):
    """Input read before the server started."""

    data: bytes = b""  # the bytes, which the server must process first
    answered: str | int | None = None  # the id of the request that was answered; None if none was


class EarlyReader:
    """Reads and answers the client's first line in a separate thread."""

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
                left = reply.line
                while left:
                    left = left[os.write(_STDOUT, left) :]
                self._request_id = reply.request


def begin(served: ServeArguments, environ: Mapping[str, str]) -> EarlyReader | None:
    """Starts to listen, if the first reply can be made before the server is ready."""
    functions = served.flags["functions.paths"] is not None
    changing = changing_lists(served.config, environ, functions=functions)
    if changing is None or sys.stdin is None or sys.stdout is None:
        return None
    # A program is at the other end unless the streams are terminals or do not block.
    if not all(os.get_blocking(each) and not os.isatty(each) for each in (_STDIN, _STDOUT)):
        return None
    return EarlyReader(partial(reply_to, version=version(NAME), changing=changing))


@contextmanager
def uncollected() -> Iterator[None]:
    """Pauses the garbage collector, and exempts all objects created so far from later runs.

    This saves an eighth of the startup CPU time; see `python -m benchmarks.startup`.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


class ServeArguments(NamedTuple):
    """The arguments of `toolcrib serve`."""

    config: Path | None
    flags: Mapping[str, object]  # settings by dotted key; None if not given


def read_command_line(words: Sequence[str]) -> ServeArguments | None:
    """Parses the command line, without the program's name, if it starts a stdio server."""
    if list(words[:1]) != ["serve"]:
        return None
    options: dict[str, list[str]] = {
        name: [] for name in ("--config", "--data-dir", "--functions", "--root", "--transport")
    }
    more: list[str] = []
    allowed: bool | None = None
    left = iter(words[1:])
    for word in left:
        if word == "--allow-broad-root":
            allowed = True
            continue
        if not word.startswith("-"):
            more.append(word)
            continue
        name, has_value, value = word.partition("=")
        given = value if has_value else next(left, None)
        if name not in options or given is None:
            return None
        options[name].append(given)
    is_stdio = options["--transport"][-1:] in ([], ["stdio"])
    if not is_stdio or (more and not options["--functions"]):
        return None
    last = {name: Path(values[-1]) if values else None for name, values in options.items()}
    functions = [Path(each) for each in options["--functions"] + more]
    flags = flags_of(functions, last["--root"], last["--data-dir"], allow_broad_root=allowed)
    return ServeArguments(last["--config"], flags)


def flags_of(  # noqa: PLR0913  # one parameter an option
    functions: Sequence[Path],
    root: Path | None,
    data_dir: Path | None,
    host: str | None = None,
    port: int | None = None,
    *,
    allow_broad_root: bool | None = None,
) -> dict[str, object]:
    """Maps the options of `toolcrib serve` to settings; None if not given."""
    return {
        "http.host": host,
        "http.port": port,
        "functions.paths": list(functions) or None,
        "allow_broad_root": allow_broad_root,
        "root": root,
        "data_dir": data_dir,
    }

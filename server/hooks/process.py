"""Runs `toolcrib hook CLIENT EVENT`: one short process, which never fails its client."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING

from tools.core.unicode_safety import log_line

if TYPE_CHECKING:
    from server.hooks.events import Handler, Write
    from server.hooks.options import HookOptions

DEADLINE = 1.8  # seconds; starting Python takes the rest of two
READY_SECONDS = 5.0  # more, if a busy machine has not taken the secrets out of a payload by then
KEEP_SECONDS = 1.0  # more, to write what is not stored to a file
MOST_BYTES = 8_000_000  # of a payload
MOST_LOG_BYTES = 10_000_000  # of the log file, above which hooks add nothing
AGENT_VARIABLE = "_TOOLCRIB_DELEGATION"
"""Set for agents that Toolcrib started, whose sessions are not the user's; a test compares it with
that of `tools.agent.agents.agent`, which takes longer to import."""

Log = Callable[[str], None]


def run_hook(words: Sequence[str], environ: Mapping[str, str]) -> None:
    """Reads the event from stdin, answers on stdout, and ends the process with 0."""
    gc.disable()  # the process ends before there is anything worth collecting
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the user interrupts the client, not us
    hooks: list[Hook] = []
    main = Thread(target=_run, args=(words, environ, hooks), daemon=True)
    main.start()
    main.join(DEADLINE)
    if main.is_alive() and hooks:
        late = Thread(target=hooks[0].give_up, daemon=True)
        late.start()
        late.join(READY_SECONDS + KEEP_SECONDS)
    os._exit(0)


def _run(words: Sequence[str], environ: Mapping[str, str], hooks: list[Hook]) -> None:
    from server.hooks.options import read_options

    client, event, *flags = words
    with suppress(Exception):  # without settings there is no log
        options = read_options(flags, environ)
        if AGENT_VARIABLE in environ:
            options = replace(options, capture=False)
        log = partial(_log, options.log_file, f"{client} {event}")
        hook = Hook((client, event), options, _write, log)
        hooks.append(hook)
        data = sys.stdin.buffer.read(MOST_BYTES + 1)
        while len(data) > MOST_BYTES and sys.stdin.buffer.read(MOST_BYTES):
            pass  # a client may fail if we close the pipe
        hook.prepare(data)
        hook.run()


class Hook:
    """One event, handled on a thread that the deadline may leave behind.

    Args:
        name: The client, and what it calls the event.
        options: The settings.
        write: Sends the reply.
        log: Reports a problem.
        is_remote: Whether the client may be on another machine, whose files are not ours.

    Attributes:
        is_done: Whether the event needs nothing more.
    """

    def __init__(
        self,
        name: tuple[str, str],
        options: HookOptions,
        write: Write,
        log: Log,
        *,
        is_remote: bool = False,
    ) -> None:
        self._client, self._event = name
        self._options = options
        self._reply = write
        self._log = log
        self._is_remote = is_remote
        self._handler: Handler | None = None
        self._ready = Event()  # the handler, or nothing to wait for
        self._ready.set()
        self.is_done = False

    def prepare(self, data: bytes) -> None:
        """Reads a payload, and takes out what must not be stored; problems are logged."""
        self._ready.clear()
        try:
            self._handler = self._read(data)
        except Exception as error:  # noqa: BLE001  # a client must not notice
            self._fail(f"{type(error).__name__}: {error}")
        finally:
            self._ready.set()

    def run(self) -> None:
        """Handles a prepared event; what cannot be stored is kept, and problems are logged."""
        if self._handler is None:
            self.is_done = True
            return
        try:
            self._handler.run(self._write)
            self.is_done = True
        except Exception as error:  # noqa: BLE001  # a client must not notice
            self._fail(f"{type(error).__name__}: {error}")

    def give_up(self) -> None:
        """Keeps what is not stored at the deadline; waits until the event is prepared."""
        self._ready.wait(READY_SECONDS)
        self._fail(f"gave up after {DEADLINE} s")

    def _read(self, data: bytes) -> Handler | None:
        """Returns the handler of an event; None if nothing is captured."""
        from server.hooks.events import Handler
        from server.hooks.payloads import read_call

        if len(data) > MOST_BYTES:
            raise ValueError(f"the payload has more than {MOST_BYTES} bytes")
        call = read_call(self._client, self._event, json.loads(data), Path.cwd())
        if self._is_remote:  # neither read nor write files that a payload names
            call = replace(call, transcript="", client=replace(call.client, rules=""))
        if self._options.capture:
            return Handler(call, self._options)
        if (reply := call.reply()) is not None:
            self._write(reply)
        return None

    def _write(self, reply: Mapping[str, object]) -> None:
        write, self._reply = self._reply, _drop  # a client reads one reply
        write(reply)

    def _fail(self, problem: str) -> None:
        """Answers what the client expects in any case, keeps the event, and logs the problem."""
        from server.hooks.unstored import keep

        if self.is_done:  # at the deadline, and again by the thread that it left behind
            return
        self.is_done = True
        if (handler := self._handler) is not None:
            if (reply := handler.call.reply()) is not None:
                self._write(reply)
            if handler.is_kept:
                try:
                    keep(self._options.data_dir, handler.call, self._options.identity)
                    problem += "; the event is kept, to be stored later"
                except OSError as error:
                    problem += f"; the event is lost: {error}"
        self._log(problem)


def _drop(_reply: Mapping[str, object]) -> None:
    """Drops a second reply."""


def _log(file: Path, name: str, problem: str) -> None:
    """Adds a line to the log file, as `server.logs` does, whose import takes too long here."""
    now = datetime.now().astimezone()
    moment = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03}"
    said = log_line(f"{name}: {problem}")
    line = f"{moment} WARNING toolcrib.hooks[{os.getpid()}]: {said}\n"
    with suppress(OSError):  # a full disk
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(file, flags, 0o600)
        if os.fstat(descriptor).st_size < MOST_LOG_BYTES:  # a running server rotates it
            os.write(descriptor, line.encode(errors="backslashreplace"))


def _write(reply: Mapping[str, object]) -> None:
    """Writes the answer at once, so that the client has all of it or nothing."""
    os.write(sys.stdout.fileno(), json.dumps(reply).encode() + b"\n")

"""Runs `toolcrib hook CLIENT EVENT`: one short process, which never fails its client."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from tools.core.unicode_safety import log_line

if TYPE_CHECKING:
    from server.hooks.options import HookOptions

DEADLINE = 1.8  # seconds; starting Python takes the rest of two
MOST_BYTES = 8_000_000  # of a payload
MOST_LOG_BYTES = 10_000_000  # of the log file, above which hooks add nothing
AGENT_VARIABLE = "_TOOLCRIB_DELEGATION"
"""Set for agents that Toolcrib started, whose sessions are not the user's; a test compares it with
that of `tools.agent.agents.agent`, which takes longer to import."""

_LOG_SECONDS = 0.1  # to log that the deadline passed


def run_hook(words: Sequence[str], environ: Mapping[str, str]) -> None:
    """Reads the event from stdin, answers on stdout, and ends the process with 0."""
    gc.disable()  # the process ends before there is anything worth collecting
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the user interrupts the client, not us
    hook = _Hook(words, environ)
    main = Thread(target=hook.run, daemon=True)
    main.start()
    main.join(DEADLINE)
    if main.is_alive():
        late = Thread(target=hook.log, args=(f"gave up after {DEADLINE} s",), daemon=True)
        late.start()
        late.join(_LOG_SECONDS)
    os._exit(0)


class _Hook:
    """One run, on a thread that the deadline may leave behind."""

    def __init__(self, words: Sequence[str], environ: Mapping[str, str]) -> None:
        self._name = " ".join(words[:2])
        self._words = words
        self._environ = environ
        self._options: HookOptions | None = None

    def run(self) -> None:
        try:
            from server.hooks.options import read_options

            client, event, *flags = self._words
            self._options = read_options(flags, self._environ)
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
            if len(data) > MOST_BYTES:
                while sys.stdin.buffer.read(MOST_BYTES):  # a client may fail if we close the pipe
                    pass
                raise ValueError(f"the payload has more than {MOST_BYTES} bytes")  # noqa: TRY301  # logged below
            payload = json.loads(data)
            if self._options.capture and AGENT_VARIABLE not in self._environ:
                from server.hooks.events import handle
                from server.hooks.payloads import read_call

                call = read_call(client, event, payload, Path.cwd())
                handle(call, self._options, _write)
        except Exception as error:  # noqa: BLE001  # a client must not notice
            self.log(f"{type(error).__name__}: {error}")

    def log(self, problem: str) -> None:
        """Adds a line to the log file, as `server.logs` does, whose import takes too long here."""
        if self._options is None:
            return
        file = self._options.log_file
        now = datetime.now().astimezone()
        moment = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03}"
        said = log_line(f"{self._name}: {problem}")
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

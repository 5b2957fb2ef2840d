"""Runs `toolcrib hook CLIENT EVENT`: one short process, which never fails its client."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server.hooks.options import HookOptions

DEADLINE = 1.8  # seconds; starting Python takes the rest of two
MOST_BYTES = 8_000_000  # of a payload
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
        self._until = monotonic() + DEADLINE

    def run(self) -> None:
        try:
            from server.hooks.options import read_options

            client, event, *flags = self._words
            self._options = read_options(flags, self._environ)
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
            if len(data) > MOST_BYTES:
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
        """Adds a line to the log file, if it can be written."""
        if self._options is None:
            return
        from server.logs import log_line_to

        log_line_to(self._options.log_file, "toolcrib.hooks", f"{self._name}: {problem}")


def _write(reply: Mapping[str, object]) -> None:
    """Writes the answer at once, so that the client has all of it or nothing."""
    os.write(sys.stdout.fileno(), json.dumps(reply).encode() + b"\n")

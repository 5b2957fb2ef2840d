"""The command `toolcrib`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from server.fast_start.attach import Hosting
    from server.fast_start.reader import EarlyReader, ServeArguments

__all__ = ["main"]

_WORDS_OF_HOOK = 3  # `hook CLIENT EVENT`


def main() -> None:
    """Runs the command line; exits with 1 on a failure and with 2 on wrong usage."""
    if sys.argv[1:2] == ["hook"] and len(sys.argv) > _WORDS_OF_HOOK:
        try:
            from server.hooks.process import run_hook  # loads a tenth of what other commands do

            run_hook(sys.argv[2:], os.environ)
        finally:
            os._exit(0)  # even if an upgrade is replacing our modules
    import io

    from server.fast_start.attach import Hosting, meet, relay
    from server.fast_start.reader import begin, read_command_line, uncollected
    from server.transport.signals import killed_by_interrupts
    from storage.outbound import opt_out

    opt_out()
    with uncollected(), killed_by_interrupts():
        served = read_command_line(sys.argv[1:])
        met = None if served is None else meet(served, os.environ)
        hosting = met if isinstance(met, Hosting) else None
        # Answers the client before importing anything slow.
        early_reader = None if served is None or hosting else begin(served, os.environ)
        if met is not None and not isinstance(met, Hosting):
            relay(met, early_reader)
        from server.cli.terminal.errors import reported
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None if it is closed
            stream.reconfigure(errors="backslashreplace")  # for characters the terminal lacks
    with reported():
        if served is None:
            _run_command()
        else:
            _serve(served, early_reader, hosting)


def _run_command() -> None:
    from server.fast_start.reader import uncollected
    from server.transport.signals import killed_by_interrupts

    with uncollected(), killed_by_interrupts():
        from server.cli.commands import app
        from server.cli.invocation import invocation
    app(prog_name=invocation())


def _serve(served: ServeArguments, early: EarlyReader | None, hosting: Hosting | None) -> None:
    """Serves without loading the command parser, which takes a tenth of the startup time."""
    import signal

    from server.cli.serving import serve

    try:
        serve(served.flags, served.config, early_reader=early, hosting=hosting)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)

"""The command `toolcrib`."""

from __future__ import annotations

import io
import os
import signal
import sys

from server.fast_start.reader import (
    EarlyReader,
    ServeArguments,
    begin,
    read_command_line,
    uncollected,
)
from server.transport.signals import killed_by_interrupts
from storage.outbound import opt_out

__all__ = ["main"]


def main() -> None:
    """Runs the command line; exits with 1 on a failure and with 2 on wrong usage."""
    opt_out()
    with uncollected(), killed_by_interrupts():
        served = read_command_line(sys.argv[1:])
        # Answers the client before importing anything slow.
        early_reader = None if served is None else begin(served, os.environ)
        from server.cli.terminal.errors import reported
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None if it is closed
            stream.reconfigure(errors="backslashreplace")  # for characters the terminal lacks
    with reported():
        if served is None:
            _run_command()
        else:
            _serve(served, early_reader)


def _run_command() -> None:
    with uncollected(), killed_by_interrupts():
        from server.cli.commands import app
        from server.cli.invocation import invocation
    app(prog_name=invocation())


def _serve(served: ServeArguments, early_reader: EarlyReader | None) -> None:
    """Serves without loading the command parser, which takes a tenth of the startup time."""
    from server.cli.serving import serve

    try:
        serve(served.flags, served.config, early_reader=early_reader)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)

"""The command `toolcrib`."""

from __future__ import annotations

import io
import os
import sys

from server.cli.uncollected import uncollected
from server.opening.opening import begin
from server.transport.signals import killed_by_interrupts

__all__ = ["main"]


def main() -> None:
    """Runs the command line; exits with 1 on a failure and with 2 on a wrong usage."""
    with uncollected(), killed_by_interrupts():
        opening = begin(sys.argv[1:], os.environ)  # before anything that takes long is imported
        from server.cli.commands import app
        from server.cli.invocation import invocation
        from server.cli.terminal.errors import reported
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # None where it is closed
            stream.reconfigure(errors="backslashreplace")  # what the terminal cannot show
    with reported():
        app(obj=opening, prog_name=invocation())

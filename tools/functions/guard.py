"""Runs a command that must not outlive the server, as a separate script.

Its stdin is a pipe that only the server holds open. When the pipe closes, because the server died
in any way, the guard kills its whole process group, which it must lead.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading


def main(command: list[str]) -> int:
    """Runs the command to its end.

    Returns:
        Its exit status; 1 if it could not be started or a signal ended it.
    """
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL)  # noqa: S603  # the server's
    except OSError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    threading.Thread(target=_end_with_server, daemon=True).start()
    status = process.wait()
    return status if status >= 0 else 1


def _end_with_server() -> None:
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The zygote as the server sees it: a process, and the socket that orders go to."""

from __future__ import annotations

import select
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import anyio.to_thread

from tools.core.errors import UnavailableError
from tools.sandbox.processes.launching.wire import send_descriptors

__all__ = ["ZygoteProcess"]

_ROOT = Path(__file__).parents[4]
# Isolated, without site packages: nothing is loaded but the standard library and our own modules.
_PROGRAM = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from tools.sandbox.processes.launching.zygote import main; "
    "main(int(sys.argv[2]), confines='confines' in sys.argv, privileged='privileged' in sys.argv)"
)


class ZygoteProcess:
    """A zygote that runs; close it with `close`.

    Args:
        confines: Whether it starts programs that Landlock confines, or others.
        privileged: Whether what they execute may give them privileges; none that is confined may.

    Raises:
        UnavailableError: It cannot be started.
    """

    def __init__(self, *, confines: bool, privileged: bool = False) -> None:
        kind = "confines" if confines else "privileged" if privileged else "frees"
        self._orders, theirs = socket.socketpair()
        self._orders.setblocking(False)  # noqa: FBT003  # the standard library has it so
        with theirs:
            fd = theirs.fileno()
            try:
                self._process = subprocess.Popen(  # noqa: S603  # our own module
                    [sys.executable, "-I", "-S", "-c", _PROGRAM, str(_ROOT), str(fd), kind],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    cwd="/",
                    env={},
                    pass_fds=[fd],
                    start_new_session=True,  # the terminal's Ctrl-C is for the server
                )
            except OSError as error:
                self._orders.close()
                raise UnavailableError(f"Programs cannot be started: {error}.") from error

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    async def hand_over(self, descriptors: Sequence[int]) -> None:
        """Sends an order; if the zygote ends before it is taken, its descriptors are closed.

        Raises:
            UnavailableError: The system refuses.
        """
        try:
            try:
                self._send(descriptors)
            except BlockingIOError:  # other orders are waiting
                await anyio.to_thread.run_sync(self._send_when_possible, descriptors)
        except ConnectionError:  # it has ended
            return
        except (OSError, ValueError) as error:
            if self._orders.fileno() < 0:  # it was closed meanwhile
                return
            raise UnavailableError(f"The program could not be started: {error}.") from error

    def close(self) -> None:
        """Has it end, and waits for that; called in threads."""
        self._orders.close()
        self._process.wait()

    def _send(self, descriptors: Sequence[int]) -> None:
        send_descriptors(self._orders, b"!", descriptors)

    def _send_when_possible(self, descriptors: Sequence[int]) -> None:
        while True:
            select.select([], [self._orders], [])
            with suppress(BlockingIOError):
                return self._send(descriptors)

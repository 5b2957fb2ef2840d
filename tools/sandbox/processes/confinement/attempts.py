"""Tries what a confined process may and may not do, and prints the names of what worked.

Whether a connection succeeded is for the listeners to report: in the process's own network, a port
may belong to something else, or even to its own end of the connection.

An interpreter runs this file as text under the confinement to test, without access to our modules:
`python -c TEXT ROOT PRIVATE TCP_PORT UDP_PORT`.
"""

import os
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress


def _write(path: str) -> None:
    with open(path, "w") as file:  # noqa: PTH123  # as simple as can be
        file.write("written")


def _read(path: str) -> None:
    with open(path) as file:  # noqa: PTH123  # as simple as can be
        file.read()


def _connect(family: int, address: tuple[str, int] | str) -> None:
    with socket.socket(family) as client:
        client.connect(address)


def main(root: str, private: str, tcp: int, udp: int) -> None:
    """Tries everything, and prints what works, except for connections."""
    attempts: dict[str, Callable[[], object]] = {
        "write in the root": lambda: _write(f"{root}/file"),
        "write a temporary file": lambda: tempfile.TemporaryFile().close(),
        "write outside the root": lambda: _write(f"{private}/written"),
        "read private files": lambda: _read(f"{private}/canary"),
    }
    for name, attempt in attempts.items():
        with suppress(OSError):
            attempt()
            print(name)  # noqa: T201  # the probe reads it
    with suppress(OSError):
        _connect(socket.AF_INET, ("127.0.0.1", tcp))
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"sent", ("127.0.0.1", udp))
    with suppress(OSError):
        os.chdir(private)  # its path may be longer than an address
        _connect(socket.AF_UNIX, "socket")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

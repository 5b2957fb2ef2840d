"""Runs a program, and passes what it sends to a port of loopback on to a Unix socket.

This file is run as text by an interpreter inside a network namespace, where nothing of this
project can be imported: `python -c TEXT SOCKET PORT PROGRAM ...`. It ends with the program.
"""

import os
import socket
import sys
import threading

__all__ = ["main"]


def _serve(listener: socket.socket, path: str) -> None:
    while True:
        client, _address = listener.accept()
        threading.Thread(target=_join, args=(client, path), daemon=True).start()


def _join(client: socket.socket, path: str) -> None:
    proxy = socket.socket(socket.AF_UNIX)
    try:
        with client, proxy:
            proxy.connect(path)
            back = threading.Thread(target=_pump, args=(proxy, client), daemon=True)
            back.start()
            _pump(client, proxy)
            back.join()
    except OSError:
        return  # One end is gone; so is the other now.


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        target.close()


def main(path: str, port: str, program: list[str]) -> int:
    """Runs the program with the port open; returns how it ended."""
    listener = socket.create_server(("127.0.0.1", int(port)))
    child = os.fork()
    if child == 0:
        listener.close()
        os.execv(program[0], program)  # noqa: S606  # its environment and descriptors are its own
    threading.Thread(target=_serve, args=(listener, path), daemon=True).start()
    _child, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))

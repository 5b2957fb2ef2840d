"""A Ray cluster on this machine: a head that runs nothing, and nodes of one processor each."""

import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

NODES = 2
"""Nodes that work."""

_HERE = "127.0.0.1"
_FREE = ("--min-worker-port=0", "--max-worker-port=0", "--dashboard-agent-listen-port=0")
"""Ports that several nodes of one machine do not dispute."""


@contextmanager
def cluster(environment: Path, nodes: int = NODES) -> Iterator[str]:
    """Starts a cluster and gives its address; it has ended after the block."""
    with socket.socket() as free:
        free.bind((_HERE, 0))
        port = free.getsockname()[1]
    ray, address = environment / "bin" / "ray", f"{_HERE}:{port}"
    head = ("--head", f"--port={port}", "--num-cpus=0", "--include-dashboard=false")
    with ExitStack() as ends:
        joined = ("--address", address, "--num-cpus=1")
        for options in (head, *[joined] * nodes):  # at once they dispute the names of their logs
            ends.enter_context(_node(ray, options))
        yield address


@contextmanager
def _node(ray: Path, options: Sequence[str]) -> Iterator[None]:
    """A node with all its processes, once it runs."""
    here = (f"--node-ip-address={_HERE}", "--disable-usage-stats", "--block")
    with subprocess.Popen(
        [ray, "start", *options, *_FREE, *here],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as node:
        try:
            _await_start(node)
            yield
        finally:
            os.killpg(node.pid, signal.SIGKILL)  # when asked, it waits for half a minute


def _await_start(node: subprocess.Popen[str]) -> None:
    assert node.stdout is not None
    said = []
    for line in node.stdout:
        said.append(line)
        if "Ray runtime started" in line:
            return
    raise SystemExit(f"A node of Ray did not start:\n{''.join(said)}")

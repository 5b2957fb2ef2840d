"""The hosts that confined programs may reach, all through a proxy of ours.

Their namespace has no network but its own loopback. There a forwarder listens, on the port that the
usual variables name, and passes connections to the proxy's Unix socket; programs may not open such
sockets themselves. The proxy accepts the allowed hosts only, each checked again by its addresses.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tools.sandbox.processes.temporary import PrivateDirectory
from tools.sandbox.web.hosts import host_and_port

if TYPE_CHECKING:
    from tools.sandbox.web.guard import AddressGuard

__all__ = ["FORWARDER_SOCKET", "AllowedHosts", "Network", "forwarding", "proxy_variables"]

FORWARDER_SOCKET = "/tmp/.toolcrib-proxy"  # noqa: S108  # the process's own /tmp
"""Where a confined forwarder sees the socket of the proxy."""

_PORT = 3128


class AllowedHosts:
    """Hosts by pattern.

    Args:
        patterns: Each `host:port`, or `*.host:port` for all that lie below it.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._exact: set[tuple[str, int]] = set()
        self._below: set[tuple[str, int]] = set()
        for pattern in patterns:
            kind = self._below if pattern.startswith("*.") else self._exact
            kind.add(host_and_port(pattern.removeprefix("*.")))

    def __call__(self, host: str, port: int) -> bool:
        """Returns whether a host, in its canonical form, may be reached on a port."""
        labels = host.split(".")
        above = (".".join(labels[count:]) for count in range(1, len(labels)))
        return (host, port) in self._exact or any((name, port) in self._below for name in above)


class Network:
    """The proxy, started when a program first needs it.

    Args:
        patterns: The hosts that it accepts.
        guard: Makes the guard that checks addresses.
    """

    def __init__(self, patterns: Sequence[str], guard: Callable[[], AddressGuard]) -> None:
        self._patterns = tuple(patterns)
        self._guard = guard
        self._serving: asyncio.Task[None] | None = None
        self._socket: asyncio.Future[str] | None = None

    async def socket(self) -> str:
        """Returns the path of the proxy's socket.

        Raises:
            OSError: It cannot be made.
        """
        if self._socket is None:
            self._socket = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._socket))
        return await asyncio.shield(self._socket)

    async def aclose(self) -> None:
        """Ends the proxy and its connections."""
        if self._serving is not None:
            self._serving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._serving

    async def _serve(self, ready: asyncio.Future[str]) -> None:
        """Serves in a task of its own, which outlives the call that needs it first."""
        from tools.sandbox.web.proxy.proxy import GuardedProxy

        directory = PrivateDirectory()
        try:
            proxy = GuardedProxy(self._guard(), allowed=AllowedHosts(self._patterns))
            path = Path(directory.path, "proxy")
            async with proxy.serving(path):
                ready.set_result(str(path))
                await asyncio.Event().wait()
        except Exception as error:  # noqa: BLE001  # raised where the socket is awaited
            ready.set_exception(error)
        finally:
            directory.close()


def forwarding() -> tuple[str, ...]:
    """Returns what is put before a command line, so that its network is the proxy."""
    text = Path(__file__).with_name("forwarder.py").read_text(encoding="utf-8")
    return (sys.executable, "-I", "-S", "-c", text, FORWARDER_SOCKET, str(_PORT))


def proxy_variables() -> dict[str, str]:
    """Returns the variables by which programs find the proxy."""
    names = ("http_proxy", "https_proxy", "all_proxy")
    address = f"http://127.0.0.1:{_PORT}"
    return {
        **dict.fromkeys((*names, *map(str.upper, names)), address),
        "no_proxy": "",
        "NO_PROXY": "",
    }

"""The guard of addresses: a name is resolved once, all it leads to is judged, and that is asked."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from ipaddress import ip_address
from typing import TypeVar

import anyio
from anyio.abc import SocketAttribute, SocketStream

from tools.core.errors import PermissionDeniedError, UnavailableError
from tools.sandbox.web.addresses import Address, why_not_public
from tools.sandbox.web.hosts import canonical_host, host_and_port, join_host_port, literal

Resolver = Callable[[str, int], Sequence[str]]
"""The addresses of a name, as texts; blocking; raises OSError for a name that has none."""

T = TypeVar("T")

ATTEMPT_DELAY = 0.25
"""Seconds until the next address is tried beside one that does not answer (RFC 8305, 5)."""

MOST_RESOLUTIONS = 32
"""Names that are looked up at once, those included that nobody waits for any more."""


class RefusedAddressError(PermissionDeniedError):
    """A host leads to an address that is not public and that the settings do not allow."""


def resolve_by_system(host: str, port: int) -> list[str]:
    """The addresses that the system's resolver gives for a name.

    Raises:
        OSError: If it gives none.
    """
    # As bytes, because Python would encode a text as it thinks best.
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


class AddressGuard:
    """Opens connections to judged addresses alone.

    A connection is refused where any of a host's addresses is not public, whatever the others are:
    the answer of a name server is its owner's, and may change between two looks.

    What resolves or connects raises InvalidArgumentsError if the host is odd, OSError if the name
    is unknown or nobody answers, RefusedAddressError if one of its addresses may not be asked, and
    UnavailableError if too many look-ups hang.

    Args:
        private: Each `host:port` that may be private, exactly as URLs name it.
        resolver: Looks names up.

    Raises:
        InvalidArgumentsError: If one of `private` is no host:port.
    """

    def __init__(
        self, private: Collection[str] = (), *, resolver: Resolver = resolve_by_system
    ) -> None:
        self._private = frozenset(host_and_port(each) for each in private)
        self._resolver = resolver
        self._resolutions = threading.Semaphore(MOST_RESOLUTIONS)

    def allows(self, host: str, port: int) -> bool:
        """Whether the settings name this host and port, so that it may be private."""
        return (host, port) in self._private

    def resolve(self, host: str, port: int) -> list[Address]:
        """Returns the judged addresses of a host; blocks.

        Args:
            host: A name or an address, an IPv6 address with or without brackets.
            port: Where it is to be asked.
        """
        host = _canonical(host)
        return self._judged(host, port, self._look_up(host, port))

    async def check(self, host: str, port: int) -> list[Address]:
        """As `resolve`, without blocking; a look-up that hangs is left behind when cancelled."""
        host = _canonical(host)
        if literal(host) is not None:
            return self.resolve(host, port)
        return await asyncio.wrap_future(self._start_resolving(host, port))

    async def connect(self, host: str, port: int, *, timeout: float) -> SocketStream:  # noqa: ASYNC109  # one deadline over look-up and connection
        """Opens a connection to a judged address of a host.

        Args:
            host: A name or an address.
            port: Its port.
            timeout: Seconds over the look-up and every attempt; TimeoutError beyond.
        """
        with anyio.fail_after(timeout):
            stream = await _first_to_answer(await self.check(host, port), port)
        try:
            self._check_far(host, port, stream.extra(SocketAttribute.raw_socket))  # noqa: S610  # it is no query
        except (RefusedAddressError, OSError):  # such as that the peer has gone already
            await anyio.aclose_forcefully(stream)
            raise
        return stream

    def connect_blocking(self, host: str, port: int, *, timeout: float) -> socket.socket:
        """As `connect`, in a thread that may block."""
        end = time.monotonic() + timeout
        addresses = self._start_resolving(_canonical(host), port).result(timeout)
        failure = OSError(f"{host} has no address")
        for address in addresses:
            left = end - time.monotonic()
            if left <= 0:
                break
            try:
                connection = socket.create_connection((str(address), port), left)
            except OSError as error:
                failure = error
                continue
            try:
                self._check_far(host, port, connection)
            except (RefusedAddressError, OSError):
                connection.close()
                raise
            return connection
        raise failure

    def _start_resolving(self, host: str, port: int) -> Future[list[Address]]:
        """Resolves in a thread of its own that does not keep the process from ending."""
        if not self._resolutions.acquire(blocking=False):
            raise UnavailableError(
                f"{host} is not looked up: {MOST_RESOLUTIONS} other names are being looked up.",
                next_actions=["Check that the name servers of this machine answer; try again."],
            )

        def resolve() -> list[Address]:
            try:
                return self.resolve(host, port)
            finally:
                self._resolutions.release()

        try:
            return in_daemon_thread(resolve, "toolcrib-resolver")
        except RuntimeError:
            self._resolutions.release()
            raise

    def _look_up(self, host: str, port: int) -> list[Address]:
        address = literal(host)
        if address is not None:
            return [address]
        found = [ip_address(text) for text in self._resolver(host, port)]
        if not found:
            raise OSError(f"{host} has no address")
        return list(dict.fromkeys(found))

    def _check_far(self, host: str, port: int, connection: socket.socket) -> None:
        """Refuses this machine by its own public address, behind whatever keeps others out."""
        address = connection.getpeername()[0]
        if connection.getsockname()[0] == address and not self.allows(_canonical(host), port):
            raise _refusal(_canonical(host), port, ip_address(address), "this machine's own")

    def _judged(self, host: str, port: int, addresses: list[Address]) -> list[Address]:
        if self.allows(host, port):
            return addresses
        for address in addresses:
            reason = why_not_public(address)
            if reason is not None:
                raise _refusal(host, port, address, reason)
        return addresses


def in_daemon_thread(function: Callable[[], T], name: str) -> Future[T]:
    """Runs something that may hang in a thread of its own, which keeps no process alive."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001  # whoever waits for it raises it
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future


def _canonical(host: str) -> str:
    return canonical_host(f"[{host}]" if ":" in host and not host.startswith("[") else host)


def _refusal(host: str, port: int, address: Address, reason: str) -> RefusedAddressError:
    where = join_host_port(host, port)
    leads = "" if str(address) == host else f" leads to {address}, which"
    return RefusedAddressError(
        f"{where}{leads} is {reason}, not a public address.",
        next_actions=[
            "Ask for something on the public internet.",
            f"To allow it, the user adds {where!r} to the setting requests.private.",
        ],
    )


async def _first_to_answer(addresses: Sequence[Address], port: int) -> SocketStream:
    """A connection to whichever answers first, each tried a little after the one before it."""
    answered: list[SocketStream] = []
    failures: list[BaseException] = []

    async def attempt(address: Address, failed: anyio.Event) -> None:
        try:
            stream = await anyio.connect_tcp(str(address), port)
        except OSError as error:
            failures.append(error.__cause__ or error)  # the system's own words
            failed.set()
            return
        answered.append(stream)
        attempts.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as attempts:
            for address in addresses:
                failed = anyio.Event()
                attempts.start_soon(attempt, address, failed)
                with anyio.move_on_after(ATTEMPT_DELAY):
                    await failed.wait()
    except BaseException:
        await _close(answered)
        raise
    await _close(answered[1:])
    if not answered:
        raise failures[0]
    return answered[0]


async def _close(streams: Sequence[SocketStream]) -> None:
    for stream in streams:
        await anyio.aclose_forcefully(stream)

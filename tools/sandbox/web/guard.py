"""The address guard: resolves a name once, checks all its addresses, and connects to those.

`ForwardProxy` is the proxy in the settings, if requests go through one.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream

from tools.core.errors import PermissionDeniedError, UnavailableError
from tools.sandbox.web.hosts import (
    Address,
    canonical_host,
    host_and_port,
    join_host_port,
    literal,
    why_not_public,
)
from tools.sandbox.web.url import Url

Resolver = Callable[[str, int], Sequence[str]]
"""Resolves a name to addresses; blocks; raises OSError if there are none."""

T = TypeVar("T")

ATTEMPT_DELAY = 0.25  # seconds before the next address is tried in parallel (RFC 8305, 5)
MOST_RESOLUTIONS = 32  # limit on simultaneous name lookups, including abandoned ones


class RefusedAddressError(PermissionDeniedError):
    """A host resolves to an address that is neither public nor allowed in the settings."""


def resolve_by_system(host: str, port: int) -> list[str]:
    """Resolves a name with the system's resolver."""
    # As bytes, because Python would choose its own encoding for a text.
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


class AddressGuard:
    """Opens connections to checked addresses only.

    A connection is refused if any of a host's addresses is not public: the owner of a name server
    controls its answers, which may change between two lookups.

    Methods that resolve or connect raise InvalidArgumentsError if the host is malformed, OSError if
    the name is unknown or no address answers, RefusedAddressError if an address is forbidden, and
    UnavailableError if too many lookups hang.

    Each `host:port` in `private` may be private, exactly as in URLs.
    """

    def __init__(
        self, private: Collection[str] = (), *, resolver: Resolver = resolve_by_system
    ) -> None:
        self._private = frozenset(host_and_port(each) for each in private)
        self._resolver = resolver
        self._resolutions = threading.Semaphore(MOST_RESOLUTIONS)

    def allows(self, host: str, port: int) -> bool:
        """Returns whether the settings allow this host and port to be private."""
        return (host, port) in self._private

    def resolve(self, host: str, port: int) -> list[Address]:
        """Returns the checked addresses of a host; blocks.

        `host` is a name or an address, an IPv6 address with or without brackets.
        """
        host = _canonical(host)
        address = literal(host)
        found = [address] if address else map(ip_address, self._resolver(host, port))
        addresses = list(dict.fromkeys(found))
        if not addresses:
            raise OSError(f"{host} has no address")
        for each in [] if self.allows(host, port) else addresses:
            reason = why_not_public(each)
            if reason is not None:
                raise _refusal(host, port, each, reason)
        return addresses

    async def check(self, host: str, port: int) -> list[Address]:
        """Like `resolve`, without blocking; when cancelled, a hanging lookup is abandoned."""
        host = _canonical(host)
        if literal(host) is not None:
            return self.resolve(host, port)
        return await asyncio.wrap_future(self._start_resolving(host, port))

    async def connect(self, host: str, port: int, *, timeout: float) -> SocketStream:  # noqa: ASYNC109  # one deadline for lookup and connection
        """Opens a connection to a checked address of a host.

        `timeout` limits the lookup and all attempts together; then it raises TimeoutError.
        """
        with anyio.fail_after(timeout):
            stream = await _first_to_answer(await self.check(host, port), port)
        try:
            self._check_far(host, port, stream.extra(SocketAttribute.raw_socket))  # noqa: S610  # not a query
        except (RefusedAddressError, OSError):  # for example, the peer is already gone
            await anyio.aclose_forcefully(stream)
            raise
        return stream

    def connect_blocking(self, host: str, port: int, *, timeout: float) -> socket.socket:
        """Like `connect`, for threads that may block."""
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
        """Resolves in a separate thread that does not keep the process alive."""
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

    def _check_far(self, host: str, port: int, connection: socket.socket) -> None:
        """Refuses this machine's own public address, which would bypass its firewall."""
        address = connection.getpeername()[0]
        if connection.getsockname()[0] == address and not self.allows(_canonical(host), port):
            raise _refusal(_canonical(host), port, ip_address(address), "this machine's own")


def in_daemon_thread(function: Callable[[], T], name: str) -> Future[T]:
    """Runs a function that may hang in a separate thread, which does not keep the process alive."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001  # raised in the waiting caller
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
    """Connects to the address that answers first, starting the attempts one after another."""
    answered: list[SocketStream] = []
    failures: list[BaseException] = []

    async def attempt(address: Address, failed: anyio.Event) -> None:
        try:
            stream = await anyio.connect_tcp(str(address), port)
        except OSError as error:
            failures.append(error.__cause__ or error)  # the system's error
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


@dataclass(frozen=True, slots=True)
class ForwardProxy:
    """A proxy that forwards our requests.

    `auth` is its user and password; None if it needs none.
    """

    url: Url
    auth: tuple[bytes, bytes] | None = field(default=None, repr=False)

    @classmethod
    def parse(cls, text: str) -> ForwardProxy | None:
        """Parses `http://user:password@host:port`; returns None for an empty text."""
        if not text:
            return None
        credentials, at, _ = urlsplit(text).netloc.rpartition("@")
        url = Url.parse(text.replace(credentials + at, "", 1))
        user, _, password = credentials.partition(":")
        auth = (unquote(user).encode(), unquote(password).encode()) if at else None
        return cls(url, auth)

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Returns the headers that a request to it needs (RFC 7617)."""
        if self.auth is None:
            return []
        token = b64encode(b":".join(self.auth)).decode("ascii")
        return [("Proxy-Authorization", f"Basic {token}")]

    @property
    def guard(self) -> AddressGuard:
        """Returns a guard that allows the proxy itself to be private."""
        return AddressGuard((self.url.host_port,))

    def options(self) -> dict[str, Any]:
        """Returns the proxy options of an httpcore2 pool."""
        import httpcore2

        options: dict[str, Any] = {
            "proxy_url": f"{self.url.scheme}://{self.url.authority}",
            "proxy_auth": self.auth,
        }
        if self.url.scheme == "https":
            options["proxy_ssl_context"] = httpcore2.default_ssl_context()
        return options

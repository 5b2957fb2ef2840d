"""The socket that the HTTP transports listen on, and who may reach it."""

from __future__ import annotations

import errno
import ipaddress
import socket

from mcp.server.transport_security import TransportSecuritySettings

from server.settings import SettingsError
from server.settings.http import HttpSettings

__all__ = ["address_of", "allowed_callers", "listen"]

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


def listen(http: HttpSettings) -> socket.socket:
    """Opens the listening socket.

    Raises:
        SettingsError: If other machines could reach it and no token is set, or if the address
            cannot be listened on.
    """
    family, address = _resolve(http)
    if http.token is None and not http.tokens and not _is_loopback(address):
        raise SettingsError(
            f"http.host = {http.host!r} can be reached from other machines, so a token is needed: "
            "set TOOLCRIB_HTTP__TOKEN, or listen on 127.0.0.1."
        )
    try:
        listener = socket.create_server((address, http.port), family=family, backlog=128)
    except OSError as error:
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"failed: {error.strerror}"
        raise SettingsError(
            f"Listening on {http.host} port {http.port} {reason}. Choose another place with "
            "--host and --port; port 0 picks a free one."
        ) from error
    # An answer goes out in two pieces: the second would wait 40 ms for the client's delayed ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def address_of(listener: socket.socket) -> str:
    """Host and port that the socket listens on, as in a URL."""
    address, port = listener.getsockname()[:2]
    return f"{_bracketed(address)}:{port}"


def allowed_callers(http: HttpSettings, listener: socket.socket) -> TransportSecuritySettings:
    """The Host and Origin headers that are answered: loopback, our own address, the settings'.

    Anything else is a page that had its own name point to this machine (DNS rebinding).
    """
    own = (http.host, _bracketed(listener.getsockname()[0]))
    names = dict.fromkeys((*_LOOPBACK_NAMES, *own))
    hosts = [pattern for name in names for pattern in (name, f"{name}:*")]
    return TransportSecuritySettings(
        allowed_hosts=[*hosts, *http.allowed_hosts],
        allowed_origins=[*(f"http://{host}" for host in hosts), *http.allowed_origins],
    )


def _resolve(http: HttpSettings) -> tuple[socket.AddressFamily, str]:
    try:
        found = socket.getaddrinfo(http.host, http.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"http.host = {http.host!r} is not an address: {error}.") from error
    # "localhost" is both; clients that find nobody on ::1 turn to 127.0.0.1, not the reverse.
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, str(address[0])


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


def _bracketed(address: str) -> str:
    return f"[{address}]" if ":" in address else address

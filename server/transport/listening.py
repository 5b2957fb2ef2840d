"""The socket that HTTP is served on, and which callers it is for."""

from __future__ import annotations

import errno
import ipaddress
import socket
from urllib.parse import urlsplit

from mcp.server.transport_security import TransportSecuritySettings

from server.settings.http import HttpSettings
from server.settings_file import SettingsError

TOKEN_LENGTH = 24
TOKEN_CHARACTERS = 8

BACKLOG = 512
"""Maximum number of connections waiting to be accepted."""

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


def listen(http: HttpSettings) -> socket.socket:
    """Opens the listening socket."""
    family, address = _resolve(http)
    is_open = not (http.token or http.tokens or http.issuer)
    if is_open and not _is_loopback(address):
        raise SettingsError(
            f"http.host = {http.host!r} can be reached from other machines, so a token is needed: "
            "set TOOLCRIB_HTTP__TOKEN, or listen on 127.0.0.1."
        )
    if http.issuer and not (http.resource or _is_loopback(address)):
        raise SettingsError(
            f"http.host = {http.host!r} does not say by which URL clients reach this server, and "
            "access tokens are issued for it: set http.resource, for example https://name/mcp."
        )
    if not _is_loopback(address):
        _check_strength(http)
    try:
        listener = socket.create_server((address, http.port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"failed: {error.strerror}"
        raise SettingsError(
            f"Listening on {http.host} port {http.port} {reason}. Choose another with --port; "
            "port 0 picks a free one."
        ) from error
    # A response is sent in two pieces: the second would wait 40 ms for the client's delayed ACK.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _check_strength(http: HttpSettings) -> None:
    """Rejects tokens that can be guessed."""
    named = {f"http.tokens.{name}.token": each.token for name, each in http.tokens.items()}
    for name, secret in {"http.token": http.token, **named}.items():
        if secret is None:
            continue
        token = secret.get_secret_value()
        repeats = token in (token + token)[1:-1]
        if len(token) < TOKEN_LENGTH or repeats or len(set(token)) < TOKEN_CHARACTERS:
            raise SettingsError(
                f"{name} ({len(token)} characters, {len(set(token))} different ones) is too easy to"
                f" guess for http.host = {http.host!r}, which other machines can reach. It needs at"
                f" least {TOKEN_LENGTH} characters, {TOKEN_CHARACTERS} different ones, and no"
                ' repetition. Make one with: python -c "import secrets;'
                ' print(secrets.token_urlsafe(32))"'
            )


def address_of(listener: socket.socket) -> str:
    """Returns host and port of the socket, as in a URL."""
    address, port = listener.getsockname()[:2]
    return f"{_bracket(address)}:{port}"


def allowed_callers(http: HttpSettings, listener: socket.socket) -> TransportSecuritySettings:
    """Returns the accepted Host and Origin headers: loopback, our own address, the settings'.

    Others come from web pages whose DNS names point to this machine (DNS rebinding).
    """
    own = (http.host, _bracket(listener.getsockname()[0]))
    names = dict.fromkeys((*_LOOPBACK_NAMES, *own))
    hosts = [pattern for name in names for pattern in (name, f"{name}:*")]
    return TransportSecuritySettings(
        allowed_hosts=[*hosts, urlsplit(http.resource).netloc, *http.allowed_hosts],
        allowed_origins=[*(f"http://{host}" for host in hosts), *http.allowed_origins],
    )


def _resolve(http: HttpSettings) -> tuple[socket.AddressFamily, str]:
    try:
        found = socket.getaddrinfo(http.host, http.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"http.host = {http.host!r} is not an address: {error}.") from error
    # "localhost" is both; clients that fail on ::1 try 127.0.0.1, but not the reverse.
    family, _, _, _, address = min(found, key=lambda entry: entry[0] != socket.AF_INET)
    return family, str(address[0])


def _is_loopback(address: str) -> bool:
    return ipaddress.ip_address(address).is_loopback


def _bracket(address: str) -> str:
    return f"[{address}]" if ":" in address else address

"""The server name in a TLS client's handshake (RFC 8446, 4.1.2; RFC 6066, 3)."""

from __future__ import annotations

from collections.abc import Mapping

ALERT = b"\x15\x03\x03\x00\x02\x02\x70"
"""The fatal alert unrecognized_name."""

_MAX_BYTES = 1 << 16
_HANDSHAKE, _MAJOR_VERSION, _CLIENT_HELLO = 0x16, 3, 1
_SERVER_NAME, _ENCRYPTED_HELLO = 0, 0xFE0D
_HOST_NAME = 0
_RECORD_HEADER, _MESSAGE_HEADER = 5, 4
_VERSION_AND_RANDOM = 34


def name_problem(said: bytes, host: str) -> str | None:
    """Returns why a client may not send this to a host; empty if it may, None if undecided yet.

    Anything but TLS is allowed: other protocols name no host, or the server speaks first.

    `said` is everything the client has sent.
    """
    if not said or (len(said) == 1 and said[0] == _HANDSHAKE):
        return None
    if said[0] != _HANDSHAKE or said[1] != _MAJOR_VERSION:
        return ""
    try:
        message = _message(said)
        if message is None and len(said) <= _MAX_BYTES:
            return None
        extensions = _extensions(message or b"")
    except ValueError:
        return "its TLS handshake is malformed or too long"
    return _problem(extensions, host)


def _problem(extensions: Mapping[int, bytes], host: str) -> str:
    if _ENCRYPTED_HELLO in extensions:
        return "its TLS handshake hides the server's name (ECH), which the client must switch off"
    name = extensions.get(_SERVER_NAME, b"")[_RECORD_HEADER:]
    if name.lower() == host.encode():
        return ""
    if not name:
        return "its TLS handshake names no server"
    return f"its TLS handshake names {name[:100].decode('ascii', 'backslashreplace')!r}"


def _message(said: bytes) -> bytes | None:
    """Returns the first handshake message, assembled from its records; None if incomplete."""
    message, at = b"", 0
    while len(said) >= at + _RECORD_HEADER:
        if said[at] != _HANDSHAKE:
            raise ValueError("another record is within the message")
        end = at + _RECORD_HEADER + int.from_bytes(said[at + 3 : at + 5])
        message += said[at + _RECORD_HEADER : end]
        at = end
    if message and message[0] != _CLIENT_HELLO:
        raise ValueError("it does not begin with a ClientHello")
    size = _MESSAGE_HEADER + int.from_bytes(message[1:4])
    return message[_MESSAGE_HEADER:size] if _MESSAGE_HEADER < size <= len(message) else None


def _extensions(hello: bytes) -> dict[int, bytes]:
    _, rest = _cut(hello[_VERSION_AND_RANDOM:], 1)  # session
    _, rest = _cut(rest, 2)  # ciphers
    _, rest = _cut(rest, 1)  # compression
    rest, after = _cut(rest, 2) if rest else (b"", b"")
    found: dict[int, bytes] = {}
    while rest:
        kind = int.from_bytes(rest[:2])
        content, rest = _cut(rest[2:], 2)
        # A list of names has exactly one host name, whose length ends it.
        is_odd_name = kind == _SERVER_NAME and (
            content[2:3] != bytes([_HOST_NAME]) or _cut(content[3:], 2)[1] or _cut(content, 2)[1]
        )
        if kind in found or is_odd_name:
            raise ValueError("an extension can be read in two ways")
        found[kind] = content
    if after:
        raise ValueError("something follows the extensions")
    return found


def _cut(data: bytes, prefix: int) -> tuple[bytes, bytes]:
    """Splits off a field that begins with its length, of the given size."""
    end = prefix + int.from_bytes(data[:prefix])
    if len(data) < max(prefix, end):
        raise ValueError("it is too short")
    return data[prefix:end], data[end:]

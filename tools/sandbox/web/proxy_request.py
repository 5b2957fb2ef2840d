"""Parses what clients of the proxy send, strictly: heads of requests, and TLS handshakes.

RFC 9112, 2.2 (line endings), 3.2 (forms of the target), 5 (field syntax), 6.3 (length of a body);
RFC 8446, 4.1.2 and RFC 6066, 3 (the name of the server).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anyio.abc import ByteReceiveStream

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.web.hosts import host_and_port, join_host_port

MAX_HEAD = 16_384  # limit on the bytes of a head
MAX_FIELDS = 100

_END = b"\r\n\r\n"
_REQUEST_LINE = re.compile(rb"([A-Z]{1,32}) ([!-~]{1,8000}) HTTP/1\.[01]")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*")
_ABSOLUTE = re.compile(rb"http://([^/?#@]+)(/[^#]*|\?[^#]*)?", re.IGNORECASE)
_LENGTH = re.compile(rb"[0-9]{1,18}")

_ONLY_ONCE = (b"host", b"content-length", b"transfer-encoding", b"proxy-authorization")


class RefusedRequestError(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status
        self.text = text


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """A request to the proxy."""

    method: str
    host: str
    port: int
    path: str  # path and query in origin form; empty for CONNECT
    credentials: str  # value of Proxy-Authorization; may be empty
    head: bytes  # the head as sent, including the empty line at its end
    rest: bytes  # data received after it

    @property
    def is_tunnel(self) -> bool:
        """True for CONNECT."""
        return self.method == "CONNECT"

    @property
    def where(self) -> str:
        """The target's `host:port`."""
        return join_host_port(self.host, self.port)

    @property
    def authority(self) -> str:
        """The Host header for a plain request."""
        return self.where.removesuffix(":80")


async def read_request(stream: ByteReceiveStream) -> ProxyRequest:
    """Reads the head of a request."""
    received = b""
    while _END not in received:
        if len(received) >= MAX_HEAD:
            raise RefusedRequestError(431, f"The head is longer than {MAX_HEAD} bytes.")
        received += await stream.receive(MAX_HEAD - len(received))
    end = received.index(_END) + len(_END)
    return _parse(received[:end], received[end:])


def _parse(head: bytes, rest: bytes) -> ProxyRequest:
    first, *lines = head[: -len(_END)].split(b"\r\n")
    line = _REQUEST_LINE.fullmatch(first)
    if line is None:
        raise RefusedRequestError(400, "The request line is not HTTP/1.1.")
    fields = _fields(lines)
    _check_framing(fields)
    method = line[1].decode()
    host, port, path = _target(method, line[2])
    if method == "CONNECT" and {b"content-length", b"transfer-encoding"} & fields.keys():
        raise RefusedRequestError(400, "CONNECT has no body.")
    credentials = fields.get(b"proxy-authorization", b"").decode("latin-1")
    return ProxyRequest(method, host, port, path, credentials, head, rest)


def _fields(lines: Sequence[bytes]) -> dict[bytes, bytes]:
    """Returns the first field of each name, by lowercase name."""
    if len(lines) > MAX_FIELDS:
        raise RefusedRequestError(431, f"There are more than {MAX_FIELDS} header fields.")
    found = [_FIELD.fullmatch(line) for line in lines]
    if not all(
        found
    ):  # bare CR or LF, a folded line, a space before the colon, a control character
        raise RefusedRequestError(400, "A header field is malformed (RFC 9112).")
    pairs = [(field[1].lower(), field[2]) for field in found if field is not None]
    times = Counter(name for name, _ in pairs)
    twice = next((name.decode() for name in _ONLY_ONCE if times[name] > 1), "")
    if twice:
        raise RefusedRequestError(400, f"The header field {twice} is there more than once.")
    return dict(reversed(pairs))


def _check_framing(fields: dict[bytes, bytes]) -> None:
    """Refuses heads that let two readers see bodies of different lengths (request smuggling)."""
    length, coding = fields.get(b"content-length"), fields.get(b"transfer-encoding")
    if length is not None and coding is not None:
        raise RefusedRequestError(400, "Content-Length and Transfer-Encoding are both there.")
    if length is not None and not _LENGTH.fullmatch(length):
        raise RefusedRequestError(400, "Content-Length is not a number.")
    if coding is not None and coding.lower() != b"chunked":
        raise RefusedRequestError(501, "No Transfer-Encoding but chunked is supported.")


def _target(method: str, target: bytes) -> tuple[str, int, str]:
    if method == "CONNECT":
        return *_authority(target), ""
    url = _ABSOLUTE.fullmatch(target)
    if url is None:
        raise RefusedRequestError(
            400,
            "Ask for http://host[:port]/path, or with CONNECT host:port; user names have to go.",
        )
    has_port = re.search(rb":[0-9]*$", url[1])
    host, port = _authority(url[1] if has_port else url[1] + b":80")
    path = (url[2] or b"/").decode()
    return host, port, path if path.startswith("/") else f"/{path}"


def _authority(text: bytes) -> tuple[str, int]:
    try:
        return host_and_port(text.decode())
    except InvalidArgumentsError as error:
        raise RefusedRequestError(400, error.message) from None


ALERT = b"\x15\x03\x03\x00\x02\x02\x70"  # the fatal alert unrecognized_name
_MAX_BYTES = 1 << 16
_HANDSHAKE, _MAJOR_VERSION, _CLIENT_HELLO = 0x16, 3, 1
_SERVER_NAME, _ENCRYPTED_HELLO = 0, 0xFE0D
_HOST_NAME = 0
_RECORD_HEADER, _MESSAGE_HEADER = 5, 4
_VERSION_AND_RANDOM = 34


def name_problem(sent: bytes, host: str) -> str | None:
    """Returns why a client may not send this to a host; empty if it may, None if undecided yet.

    Anything but TLS is allowed: other protocols name no host, or the server speaks first.

    `sent` is everything the client has sent.
    """
    if not sent or (len(sent) == 1 and sent[0] == _HANDSHAKE):
        return None
    if sent[0] != _HANDSHAKE or sent[1] != _MAJOR_VERSION:
        return ""
    try:
        message = _message(sent)
        if message is None and len(sent) <= _MAX_BYTES:
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


def _message(sent: bytes) -> bytes | None:
    """Returns the first handshake message, assembled from its records; None if incomplete."""
    message, at = b"", 0
    while len(sent) >= at + _RECORD_HEADER:
        if sent[at] != _HANDSHAKE:
            raise ValueError("another record is within the message")
        end = at + _RECORD_HEADER + int.from_bytes(sent[at + 3 : at + 5])
        message += sent[at + _RECORD_HEADER : end]
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

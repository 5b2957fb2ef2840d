"""Parses the head of a proxy request strictly, and refuses ambiguous ones.

RFC 9112, 2.2 (line endings), 3.2 (forms of the target), 5 (field syntax), 6.3 (length of a body).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from anyio.abc import ByteReceiveStream

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.web.hosts import host_and_port, join_host_port

MAX_HEAD = 16_384
"""Limit on the bytes of a head."""

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

import base64
import os
import socket
import ssl
import threading
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
import h11
import primp
import pytest
from anyio.abc import SocketAttribute, SocketListener, SocketStream
from hypothesis import given
from hypothesis import strategies as st

from tools.sandbox.web.guard import AddressGuard
from tools.sandbox.web.proxy import GuardedProxy, ProxyAddress, ProxyLimits, Refusal
from tools.sandbox.web.proxy_request import (
    MAX_HEAD,
    ProxyRequest,
    RefusedRequestError,
    read_request,
)

Handler = Callable[[SocketStream], Awaitable[None]]
BROKEN = (anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError, OSError)
HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
SOON = ProxyLimits(head_seconds=0.2, connect_seconds=0.2, idle_seconds=0.2)


class Target:
    """A server on loopback that remembers what it was sent."""

    def __init__(self, answer: bytes = HELLO) -> None:
        self.answer = answer
        self.port = 0
        self.received: list[bytes] = []

    @property
    def where(self) -> str:
        return f"127.0.0.1:{self.port}"

    async def speak(self, stream: SocketStream) -> None:
        """Reads one request with its body, and answers it."""
        received = b""
        with suppress(*BROKEN):
            while not _is_whole(received):
                received += await stream.receive()
        self.received.append(received)
        with suppress(*BROKEN):
            await stream.send(self.answer)


def _is_whole(request: bytes) -> bool:
    head, found, body = request.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" in head.lower():
        return body.endswith(b"0\r\n\r\n")
    length = next(
        (int(each[15:]) for each in head.lower().split(b"\r\n") if each[:15] == b"content-length:"),
        0,
    )
    return bool(found) and len(body) >= length


@asynccontextmanager
async def serving(handler: Handler) -> AsyncIterator[int]:
    """A server on loopback, for each of whose connections a handler runs."""

    async def handle(stream: SocketStream) -> None:
        async with stream:
            await handler(stream)

    (listener,) = (await anyio.create_tcp_listener(local_host="127.0.0.1")).listeners
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, handle)
        yield listener.extra(SocketAttribute.local_port)  # noqa: S610  # this is no Django
        group.cancel_scope.cancel()


@pytest.fixture
async def target() -> AsyncIterator[Target]:
    target = Target()
    async with serving(target.speak) as target.port:
        yield target


def _everything(_host: str, _port: int) -> bool:
    return True


def proxy_to(*private: str, limits: ProxyLimits | None = None) -> GuardedProxy:
    return GuardedProxy(AddressGuard(private), allowed=_everything, limits=limits)


async def connected(address: ProxyAddress) -> SocketStream:
    return await anyio.connect_tcp(address.host, address.port)


def _authorized(address: ProxyAddress, request: bytes) -> bytes:
    """The request with the proxy's token in its first line's wake."""
    if not address.token:
        return request
    first, _, rest = request.partition(b"\r\n")
    return b"\r\n".join([first, _credentials(address), rest])


def _credentials(address: ProxyAddress) -> bytes:
    pair = base64.b64encode(f"toolcrib:{address.token}".encode())
    return b"Proxy-Authorization: Basic " + pair


async def said(stream: SocketStream) -> bytes:
    """All that the other side says until it ends."""
    received = b""
    with anyio.fail_after(20), suppress(*BROKEN):
        while True:
            received += await stream.receive()
    return received


async def asked(address: ProxyAddress, request: bytes, *, as_it_is: bool = False) -> bytes:
    """What the proxy answers to some bytes."""
    async with await connected(address) as stream:
        with suppress(*BROKEN):
            await stream.send(request if as_it_is else _authorized(address, request))
        return await said(stream)


async def through(target: Target, request: bytes) -> bytes:
    """What a proxy that may ask the target answers."""
    async with proxy_to(target.where).serving() as address:
        return await asked(address, request)


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def get(where: str, *fields: str, path: str = "/") -> bytes:
    lines = [f"GET http://{where}{path} HTTP/1.1", f"Host: {where}", *fields, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def connect(where: str) -> bytes:
    return f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n\r\n".encode()


# What goes through


async def test_a_plain_request_goes_through(target: Target) -> None:
    answer = await through(target, get(target.where, path="/a/../b?c=%20&d"))
    assert status(answer) == 200
    assert answer.endswith(b"\r\n\r\nhello")
    assert target.received[0].startswith(b"GET /a/../b?c=%20&d HTTP/1.1\r\nhost: " + b"127.0.0.1:")


@pytest.mark.parametrize("flags", [[], ["--proxytunnel"]], ids=["plain", "tunnel"])
async def test_curl_goes_through(target: Target, flags: Sequence[str]) -> None:
    async with proxy_to(target.where).serving() as address:
        command = ["curl", "-sS", "-x", address.url, *flags, f"http://{target.where}/x"]
        ended = await anyio.run_process(command, env={"PATH": os.environ["PATH"]})
    assert ended.stdout == b"hello"
    assert len(target.received) == 1


@pytest.mark.parametrize("flags", [["-T", "-"], ["-d", "@-"]], ids=["chunked", "with a length"])
@pytest.mark.parametrize("kilobytes", [0, 1, 3_000])
async def test_what_curl_uploads_goes_through(
    target: Target, flags: Sequence[str], kilobytes: int
) -> None:
    body = os.urandom(kilobytes * 500).hex().encode()
    async with proxy_to(target.where).serving() as address:
        command = ["curl", "-sS", "-x", address.url, *flags, f"http://{target.where}/x"]
        ended = await anyio.run_process(command, input=body, env={"PATH": os.environ["PATH"]})
    assert ended.stdout == b"hello"
    (received,) = target.received
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(received)
    events = iter(connection.next_event, h11.NEED_DATA)
    uploaded = b""
    for event in events:
        uploaded += bytes(event.data) if isinstance(event, h11.Data) else b""
        if isinstance(event, h11.EndOfMessage):
            break
    assert uploaded == body


async def test_urllib_goes_through(target: Target) -> None:
    def ask(address: ProxyAddress) -> bytes:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": address.url}))
        with opener.open(f"http://{target.where}/x", timeout=10) as answer:
            read: bytes = answer.read()
        return read

    async with proxy_to(target.where).serving() as address:
        assert await anyio.to_thread.run_sync(ask, address) == b"hello"


async def test_primp_goes_through(target: Target) -> None:
    def ask(address: ProxyAddress) -> str:
        client = primp.Client(proxy=address.url, impersonate="random", timeout=10)
        return client.get(f"http://{target.where}/x").text

    async with proxy_to(target.where).serving() as address:
        assert await anyio.to_thread.run_sync(ask, address) == "hello"
    assert b"via: 1.1 toolcrib" in target.received[0]


@pytest.mark.parametrize("megabytes", [0, 1, 8])
async def test_a_tunnel_passes_everything_on_and_each_end_of_it(megabytes: int) -> None:
    sent = os.urandom(megabytes * 1_000_000)
    received = bytearray()

    async def hear_out_then_repeat(stream: SocketStream) -> None:
        async for chunk in stream:
            received.extend(chunk)
        await stream.send(bytes(received))
        await stream.send_eof()

    async with (
        serving(hear_out_then_repeat) as port,
        proxy_to(f"127.0.0.1:{port}").serving() as address,
        await connected(address) as stream,
    ):
        await stream.send(_authorized(address, connect(f"127.0.0.1:{port}")) + sent)
        await stream.send_eof()
        answer = await said(stream)
    assert answer == b"HTTP/1.1 200 Connection established\r\n\r\n" + sent


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\nhello",
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + HELLO,
        HELLO.replace(
            b"\r\n\r\n", b"\r\nConnection: keep-alive, X\r\nKeep-Alive: 5\r\nX: 1\r\n\r\n"
        ),
    ],
    ids=["chunked", "till the end", "hints first", "kept alive"],
)
async def test_an_answer_in_any_frame_arrives_whole(target: Target, answer: bytes) -> None:
    target.answer = answer
    async with proxy_to(target.where).serving() as address:
        command = ["curl", "-sS", "-i", "-x", address.url, f"http://{target.where}/x"]
        ended = await anyio.run_process(command, env={"PATH": os.environ["PATH"]})
    head, _, body = ended.stdout.rpartition(b"\r\n\r\n")
    assert body == b"hello"
    assert b"connection: close" in head.lower()
    assert b"keep-alive" not in head.lower()
    assert b"\r\nx: 1" not in head.lower()


async def test_what_is_for_one_hop_stays_there(target: Target) -> None:
    fields = [
        "Connection: keep-alive, X-Private, Host, Content-Length",
        *("X-Private: 1", "Keep-Alive: 5", "Proxy-Connection: keep-alive", "TE: trailers"),
        *("Upgrade: websocket", "Trailer: X", "X-Public: 2", "Content-Length: 3"),
    ]
    answer = await through(target, get(target.where, *fields) + b"abc")
    assert status(answer) == 200
    head, _, body = target.received[0].partition(b"\r\n\r\n")
    names = sorted(line.split(b":")[0] for line in head.split(b"\r\n")[1:])
    assert names == [b"connection", b"content-length", b"host", b"via", b"x-public"]
    assert b"\r\nconnection: close" in head
    assert body == b"abc"


async def test_the_host_that_was_judged_is_the_host_that_is_told(target: Target) -> None:
    request = get(target.where).replace(f"Host: {target.where}".encode(), b"Host: other.example")
    assert status(await through(target, request)) == 200
    assert b"other.example" not in target.received[0]


async def test_a_connection_is_for_one_request(target: Target) -> None:
    async with proxy_to(target.where).serving() as address:
        twice = _authorized(address, get(target.where)) * 2
        answer = await asked(address, twice, as_it_is=True)
    assert answer.count(b"HTTP/1.1") == 1
    assert len(target.received) == 1
    assert target.received[0].count(b"GET") == 1


# Where it does not lead

PRIVATE = [
    *("127.0.0.1", "127.8.9.1", "[::1]", "[::ffff:127.0.0.1]", "localhost", "0.0.0.0", "[::]"),  # noqa: S104  # asked for, not served
    *("10.0.0.1", "172.16.3.4", "192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1"),
    *("[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1]", "[fd00::1]", "255.255.255.255"),
]


@pytest.mark.parametrize("make", [get, connect], ids=["plain", "tunnel"])
@pytest.mark.parametrize("host", PRIVATE)
async def test_a_private_address_is_refused(
    target: Target, host: str, make: Callable[[str], bytes]
) -> None:
    async with proxy_to().serving() as address:
        answer = await asked(address, make(f"{host}:{target.port}"))
    assert status(answer) == 403
    assert b"requests.private" in answer or b"not a public address" in answer
    assert not target.received


@pytest.mark.parametrize("make", [get, connect], ids=["plain", "tunnel"])
async def test_a_name_is_judged_by_where_it_leads(
    target: Target, make: Callable[[str], bytes]
) -> None:
    guard = AddressGuard(resolver=lambda _host, _port: ["93.184.215.14", "127.0.0.1"])
    async with GuardedProxy(guard, allowed=_everything).serving() as address:
        assert status(await asked(address, make(f"rebound.example:{target.port}"))) == 403
    assert not target.received


@pytest.mark.parametrize("make", [get, connect], ids=["plain", "tunnel"])
@pytest.mark.parametrize(
    "where",
    [
        *("other.example:443", "a.allowed.example:443", "allowed.example:80", "127.0.0.1:443"),
        *("allowed.example.evil:443", "xallowed.example:443"),
    ],
)
async def test_what_is_not_allowed_is_not_even_looked_up(
    where: str, make: Callable[[str], bytes]
) -> None:
    looked_up: list[str] = []

    def resolve(host: str, _port: int) -> list[str]:
        looked_up.append(host)
        raise OSError("nothing is there")

    def allowed(host: str, port: int) -> bool:
        return (host, port) == ("allowed.example", 443)

    proxy = GuardedProxy(AddressGuard(resolver=resolve), allowed=allowed)
    async with proxy.serving() as address:
        assert status(await asked(address, make(where))) == 403
        assert not looked_up
        for spelling in ("allowed.example:443", "ALLOWED.Example:443"):
            assert status(await asked(address, make(spelling))) == 502
    assert looked_up == ["allowed.example"] * 2


ODD_TARGETS = [
    *("0x7f.1", "0x7f000001", "2130706433", "127.1", "017700000001", "127.0.0.01", "localhost."),
    *("[fe80::1%25lo]", "[::1", "::1", "exa mple", "ex\tample", "-a.example", "a..example", ""),
    *(
        *("a.example%2f", "%6cocalhost", "127。0。0。1", "example\0", "user@127.0.0.1"),
        "a:b@127.0.0.1",
    ),
]


@pytest.mark.parametrize("make", [get, connect], ids=["plain", "tunnel"])
@pytest.mark.parametrize("host", ODD_TARGETS)
async def test_an_odd_host_is_refused(
    target: Target, host: str, make: Callable[[str], bytes]
) -> None:
    lines = make("HERE").split(b"\r\n")
    lines[0] = lines[0].replace(b"HERE", f"{host}:{target.port}".encode())
    async with proxy_to(target.where, f"localhost:{target.port}").serving() as address:
        answer = await asked(address, b"\r\n".join(lines))
    assert status(answer) == 400
    assert not target.received


@pytest.mark.parametrize("make", [get, connect], ids=["plain", "tunnel"])
@pytest.mark.parametrize("port", ["0", "65536", "99999999999", "-1", "+80", "080", "8o", "80:80"])
async def test_an_odd_port_is_refused(port: str, make: Callable[[str], bytes]) -> None:
    async with proxy_to().serving() as address:
        assert status(await asked(address, make(f"127.0.0.1:{port}"))) == 400


@pytest.mark.parametrize(
    "line",
    [
        *("GET / HTTP/1.1", "GET * HTTP/1.1", "GET https://HERE/ HTTP/1.1", "CONNECT / HTTP/1.1"),
        *("GET ftp://HERE/ HTTP/1.1", "GET file:///etc/passwd HTTP/1.1", "GET //HERE/ HTTP/1.1"),
        *("GET HERE HTTP/1.1", "CONNECT http://HERE/ HTTP/1.1", "CONNECT 127.0.0.1 HTTP/1.1"),
        *("GET http:HERE HTTP/1.1", "GET http:///HERE HTTP/1.1", "GET http://HERE\\@x/ HTTP/1.1"),
        *("GET http://HERE/ HTTP/2.0", "GET http://HERE/ HTTP/1.2", "GET http://HERE/ HTTP/1.10"),
        *("GET http://HERE/ http/1.1", "GET http://HERE/", "get http://HERE/ HTTP/1.1", ""),
        *("GET  http://HERE/ HTTP/1.1", " GET http://HERE/ HTTP/1.1", "GET\thttp://HERE/ HTTP/1.1"),
        *("GET http://HERE/ HTTP/1.1 ", "GET http://HERE/a b HTTP/1.1"),
        *("GET http://HERE/\0 HTTP/1.1", "GET http://HERE/#x HTTP/1.1", "PRI * HTTP/2.0"),
        "GET http://HERE/ü HTTP/1.1",
    ],
)
async def test_an_odd_request_line_is_refused(target: Target, line: str) -> None:
    line = line.replace("HERE", target.where)
    answer = await through(target, f"{line}\r\nHost: {target.where}\r\n\r\n".encode())
    assert status(answer) == 400
    assert not target.received


SMUGGLED = {
    "length and coding": "Content-Length: 3\r\nTransfer-Encoding: chunked",
    "coding and length": "Transfer-Encoding: chunked\r\nContent-Length: 3",
    "two lengths": "Content-Length: 3\r\nContent-Length: 4",
    "the same length twice": "Content-Length: 3\r\nContent-Length: 3",
    "lengths in a list": "Content-Length: 3, 3",
    "a length with a sign": "Content-Length: +3",
    "a negative length": "Content-Length: -3",
    "a hexadecimal length": "Content-Length: 0x3",
    "a length with a space": "Content-Length: 3 3",
    "an empty length": "Content-Length:",
    "a length that overflows": "Content-Length: 99999999999999999999",
    "two codings": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "an unknown coding": "Transfer-Encoding: xchunked",
    "a list of codings": "Transfer-Encoding: gzip, chunked",
    "identity": "Transfer-Encoding: identity",
    "a coding with a tab in it": "Transfer-Encoding: chun\tked",
    "a space before the colon": "Transfer-Encoding : chunked",
    "a tab before the colon": "Content-Length\t: 3",
    "a folded line": "X: a\r\n b",
    "a line folded by a tab": "X: a\r\n\tTransfer-Encoding: chunked",
    "a first line that is folded": " X: a",
    "a bare line feed": "X: a\nTransfer-Encoding: chunked",
    "a bare carriage return": "X: a\rTransfer-Encoding: chunked",
    "a null": "X: a\0b",
    "an escape": "X: a\x1b[2J",
    "a delete": "X: a\x7f",
    "no colon": "Transfer-Encoding chunked",
    "no name": ": chunked",
    "a name in quotes": '"Content-Length": 3',
    "a name of another script": "Content-Lengthé: 3",
    "another host": "Host: other.example",
    "the token twice": "Proxy-Authorization: Basic eDp5",
}


@pytest.mark.parametrize("fields", SMUGGLED.values(), ids=SMUGGLED)
async def test_what_can_be_read_in_two_ways_is_refused(target: Target, fields: str) -> None:
    answer = await through(target, get(target.where, fields) + b"0\r\n\r\n")
    assert status(answer) in {400, 501}
    assert not target.received


@pytest.mark.parametrize(
    "name", ["length and coding", "the same length twice", "lengths in a list", "a folded line"]
)
def test_a_lenient_reader_takes_what_is_refused_here(name: str) -> None:
    lenient = h11.Connection(h11.SERVER)
    lenient.receive_data(get("127.0.0.1", SMUGGLED[name]))
    assert isinstance(lenient.next_event(), h11.Request)


def test_a_lenient_reader_ends_lines_as_it_likes() -> None:
    lenient = h11.Connection(h11.SERVER)
    lenient.receive_data(get("127.0.0.1", "X: a\nY: b").replace(b"\r\n", b"\n"))
    request = lenient.next_event()
    assert isinstance(request, h11.Request)
    assert (b"y", b"b") in list(request.headers)


async def test_line_feeds_alone_end_no_head(target: Target) -> None:
    async with proxy_to(target.where, limits=SOON).serving() as address:
        request = _authorized(address, get(target.where)).replace(b"\r\n", b"\n")
        assert status(await asked(address, request, as_it_is=True)) == 408
    assert not target.received


@pytest.mark.parametrize("fields", ["Content-Length: 3", "Transfer-Encoding: chunked"])
async def test_a_tunnel_has_no_body(target: Target, fields: str) -> None:
    request = connect(target.where)[:-2] + f"{fields}\r\n\r\n".encode()
    assert status(await through(target, request)) == 400


@given(
    st.binary(max_size=200)
    | st.lists(
        st.sampled_from(
            [
                *(b"GET ", b"CONNECT ", b"http://", b"a.example", b":80", b"/", b" HTTP/1.1"),
                *(
                    *(b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b"Host: a", b"Content-Length: 3"),
                    b"\0",
                ),
                *(b"Transfer-Encoding: chunked", b"\r\n\r\n", b"[::1]", b"@", b"\xff"),
            ]
        ),
        max_size=14,
    ).map(b"".join)
)
def test_any_head_is_read_or_refused(head: bytes) -> None:
    async def read() -> ProxyRequest | None:
        near, far = socket.socketpair()
        async with await SocketStream.from_socket(near) as stream:
            with far:
                far.sendall(head + b"\r\n\r\n")
            with suppress(RefusedRequestError):
                return await read_request(stream)
            return None

    found = anyio.run(read)
    if found is not None:
        assert found.head.count(b"\r\n") == found.head.count(b"\r") == found.head.count(b"\n")
        assert found.host
        assert 0 < found.port < 65_536
        assert found.path.startswith("/") or found.is_tunnel


# Who may use it


@pytest.mark.parametrize(
    "field",
    [
        *("X: 1", "Proxy-Authorization: Basic", "Proxy-Authorization: Basic eDp5"),
        *("Proxy-Authorization: Bearer TOKEN", "Authorization: Basic PAIR"),
        *("Proxy-Authorization: TOKEN", "Proxy-Authorization: Basic TOKEN"),
        *("Proxy-Authorization: Basic PAIR=", "Proxy-Authorization: Basic \xff"),
    ],
)
@pytest.mark.parametrize("make", [get, connect], ids=["plain", "tunnel"])
async def test_the_token_is_asked_for(
    target: Target, field: str, make: Callable[[str], bytes]
) -> None:
    async with proxy_to(target.where).serving() as address:
        pair = _credentials(address).split(b" ")[-1].decode()
        line = field.replace("TOKEN", address.token).replace("PAIR", pair).encode("latin-1")
        request = make(target.where)[:-2] + line + b"\r\n\r\n"
        answer = await asked(address, request, as_it_is=True)
    assert status(answer) == 407
    assert b'Proxy-Authenticate: Basic realm="toolcrib"' in answer
    assert not target.received


async def test_nobody_is_told_the_token(target: Target) -> None:
    async with proxy_to(target.where).serving() as address, proxy_to().serving() as other:
        await asked(address, get(target.where))
        assert address.token not in repr(address)
        assert address.token != other.token
        assert len(address.token) >= 32
        assert address.host == "127.0.0.1"
    assert b"proxy-authorization" not in target.received[0].lower()


@asynccontextmanager
async def at_a_listener(proxy: GuardedProxy, where: str = "") -> AsyncIterator[ProxyAddress]:
    """The proxy at a listener of its caller's, whose connections may all lead to one place."""
    host, _, port = where.partition(":")
    listening = socket.create_server(("127.0.0.1", 0))
    async with (
        await SocketListener.from_socket(listening) as listener,
        anyio.create_task_group() as group,
    ):
        group.start_soon(proxy.serve, listener, (host, int(port)) if where else None)
        yield ProxyAddress("127.0.0.1", listening.getsockname()[1], "")
        group.cancel_scope.cancel()


async def test_whoever_reaches_its_callers_listener_needs_no_token(target: Target) -> None:
    async with at_a_listener(proxy_to(target.where)) as address:
        assert status(await asked(address, get(target.where))) == 200
        assert status(await asked(address, connect("10.0.0.1:80"))) == 403


async def test_a_listener_that_leads_to_one_place_passes_on_what_is_said(target: Target) -> None:
    async with at_a_listener(proxy_to(target.where), target.where) as address:
        assert await asked(address, get("anywhere.example")) == HELLO
    assert target.received == [get("anywhere.example")]
    async with at_a_listener(proxy_to(), target.where) as address:
        assert status(await asked(address, get("anywhere.example"))) == 403


async def test_a_refusal_says_what_was_asked_for_and_at_which_address(target: Target) -> None:
    refusals: list[Refusal] = []

    def allowed(host: str, _port: int) -> bool:
        return host != "other.example"

    proxy = GuardedProxy(AddressGuard(), allowed=allowed, on_refusal=refusals.append)
    async with at_a_listener(proxy) as address:
        for where in ("OTHER.example:81", target.where):
            assert status(await asked(address, connect(where))) == 403
    asked_for = [(each.host, each.port, each.is_allowed, each.asked_at) for each in refusals]
    assert asked_for == [
        ("other.example", 81, False, "127.0.0.1"),
        ("127.0.0.1", target.port, True, "127.0.0.1"),
    ]


# What it bears


@pytest.mark.parametrize(
    "fields",
    [
        ["X: " + "a" * MAX_HEAD],
        [f"X{number}: a" for number in range(101)],
        ["a" * 8_000 + ": 1", "b" * 8_000 + ": 1", "c" * 8_000 + ": 1"],
    ],
    ids=["a long field", "many fields", "long names"],
)
async def test_a_head_has_an_end(target: Target, fields: Sequence[str]) -> None:
    assert status(await through(target, get(target.where, *fields))) == 431
    assert not target.received


@pytest.mark.parametrize("sent", [b"", b"G", b"GET http://x/ HTTP/1.1\r\nHost: x\r\n"])
async def test_a_head_that_does_not_come_is_not_waited_for(sent: bytes) -> None:
    async with proxy_to(limits=SOON).serving() as address, await connected(address) as stream:
        if sent:
            await stream.send(sent)
        assert status(await said(stream)) == 408


async def test_a_head_that_drips_is_not_waited_for() -> None:
    async with proxy_to(limits=SOON).serving() as address, await connected(address) as stream:
        answer = b""

        async def drip() -> None:
            with suppress(*BROKEN):
                for byte in get("a.example", "X: " + "a" * 15_000):
                    await stream.send(bytes([byte]))
                    with anyio.move_on_after(0.05):
                        await anyio.sleep_forever()

        async with anyio.create_task_group() as group:
            group.start_soon(drip)
            answer = await said(stream)
            group.cancel_scope.cancel()
        assert status(answer) == 408


async def _hold(stream: SocketStream) -> None:
    """Listens, and says nothing."""
    await said(stream)


async def test_a_target_that_does_not_answer_is_not_waited_for() -> None:
    async with (
        serving(_hold) as port,
        proxy_to(f"127.0.0.1:{port}", limits=SOON).serving() as address,
    ):
        assert status(await asked(address, get(f"127.0.0.1:{port}"))) == 504
        tunnelled = await asked(address, connect(f"127.0.0.1:{port}") + b"anybody?")
        assert tunnelled == b"HTTP/1.1 200 Connection established\r\n\r\n"


async def test_a_name_that_is_looked_up_for_ever_is_not_waited_for() -> None:
    released = threading.Event()

    def resolve(_host: str, _port: int) -> list[str]:
        released.wait()
        return []

    proxy = GuardedProxy(AddressGuard(resolver=resolve), allowed=_everything, limits=SOON)
    async with proxy.serving() as address:
        assert status(await asked(address, connect("slow.example:443"))) == 504
    released.set()


async def test_too_many_connections_wait_for_others_to_end(target: Target) -> None:
    limits = ProxyLimits(connections=2)
    async with (
        serving(_hold) as port,
        proxy_to(f"127.0.0.1:{port}", target.where, limits=limits).serving() as address,
    ):
        tunnel = _authorized(address, connect(f"127.0.0.1:{port}"))
        first, second = await connected(address), await connected(address)
        for stream in (first, second):
            await stream.send(tunnel)
            assert status(await stream.receive()) == 200
        waiting = await connected(address)
        await waiting.send(_authorized(address, get(target.where)))
        with anyio.move_on_after(0.2) as unanswered:
            await waiting.receive()
        assert unanswered.cancelled_caught
        await first.aclose()
        with anyio.fail_after(10):
            assert status(await waiting.receive()) == 200
        await second.aclose()
        await waiting.aclose()


@pytest.mark.parametrize(
    "answer",
    [
        *(b"", b"hello\r\n\r\n", b"HTTP/1.1 twohundred OK\r\n\r\n"),
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX\0: 1\r\n\r\n",
        *(b"HTTP/1.1 200 OK\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", b"HTTP/1.1\r\n\r\n"),
        *(b"SSH-2.0-OpenSSH_9.9\r\n", b"\x15\x03\x01\x00\x02\x02\x50"),
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n",
    ],
    ids=range(12),
)
async def test_a_target_that_speaks_no_http_is_said_to(target: Target, answer: bytes) -> None:
    target.answer = answer
    assert status(await through(target, get(target.where))) == 502


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nxyz\r\n",
    ],
)
async def test_half_an_answer_is_not_made_whole(target: Target, answer: bytes) -> None:
    target.answer = answer
    async with proxy_to(target.where).serving() as address:
        command = ["curl", "-s", "-x", address.url, f"http://{target.where}/x"]
        ended = await anyio.run_process(command, check=False, env={"PATH": os.environ["PATH"]})
    assert ended.returncode in {18, 56}  # partial file; failure in receiving


async def test_nobody_there_is_said(target: Target) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with proxy_to(f"127.0.0.1:{port}").serving() as address:
        assert status(await asked(address, get(f"127.0.0.1:{port}"))) == 502
        assert status(await asked(address, connect(f"127.0.0.1:{port}"))) == 502


async def test_what_one_client_breaks_is_nobody_elses(target: Target) -> None:
    async with proxy_to(target.where).serving() as address:
        for sent in (b"", b"\0" * 10, get(target.where)[:20], connect(target.where)):
            stream = await connected(address)
            if sent:
                await stream.send(_authorized(address, sent))
            await anyio.aclose_forcefully(stream)
        assert status(await asked(address, get(target.where))) == 200


async def test_everything_is_closed_with_the_block(target: Target) -> None:
    ended = anyio.Event()

    async def wait_for_the_end(stream: SocketStream) -> None:
        await said(stream)
        ended.set()

    async with serving(wait_for_the_end) as port:
        async with proxy_to(f"127.0.0.1:{port}").serving() as address:
            stream = await connected(address)
            await stream.send(_authorized(address, connect(f"127.0.0.1:{port}")))
            assert status(await stream.receive()) == 200
        with anyio.fail_after(10):
            assert await said(stream) == b""
            await ended.wait()
        await stream.aclose()
        with pytest.raises(OSError, match="connect"):
            await connected(address)


@pytest.mark.parametrize("error", [KeyError("x"), ssl.SSLError(1, "x"), TimeoutError()])
async def test_what_goes_wrong_in_the_block_passes_as_it_is(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        async with proxy_to().serving():
            raise error
    assert caught.value is error

"""The server that TLS names in a tunnel: the host that was allowed, or nothing passes."""

import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from tools.sandbox.processes.confinement.network import Refusals
from tools.sandbox.processes.models import SettingNames
from tools.sandbox.web.guard import AddressGuard
from tools.sandbox.web.proxy import GuardedProxy, ProxyAddress
from tools.sandbox.web.proxy_request import ALERT, name_problem

HOST = "allowed.example"
GREETING = b"220 at your service\r\n"


def hello(name: str | None) -> bytes:
    """What Python's TLS says first."""
    context = ssl.create_default_context()
    context.check_hostname = False
    outgoing = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


def extended(said: bytes, kind: int, content: bytes) -> bytes:
    """A ClientHello of one record with one more extension, in front of all others."""
    body = bytearray(said[9:])
    at = 34 + 1 + body[34]
    at += 2 + int.from_bytes(body[at : at + 2])
    at += 1 + body[at]
    added = kind.to_bytes(2) + len(content).to_bytes(2) + content
    size = int.from_bytes(body[at : at + 2]) + len(added)
    body[at : at + 2] = size.to_bytes(2) + added
    return records(b"\x01" + len(body).to_bytes(3) + bytes(body), len(body) + 4)


def records(message: bytes, size: int) -> bytes:
    """A message of the handshake in records of some size."""
    pieces = (message[at : at + size] for at in range(0, len(message), size))
    return b"".join(b"\x16\x03\x01" + len(piece).to_bytes(2) + piece for piece in pieces)


@dataclass
class Tunnels:
    """A proxy, a server behind it that greets first, and what came of them."""

    port: int = 0
    address: ProxyAddress | None = None
    received: bytes = b""
    refusals: Refusals = field(default_factory=lambda: Refusals(SettingNames()))

    async def serve(self, stream: SocketStream) -> None:
        async with stream:
            await stream.send(GREETING)
            while True:
                try:
                    self.received += await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return

    async def ask(self, *pieces: bytes, host: str = HOST) -> bytes:
        """What comes back through a tunnel, after the greeting."""
        assert self.address is not None
        request = f"CONNECT {host}:{self.port} HTTP/1.1\r\nHost: {host}:{self.port}\r\n\r\n"
        async with await anyio.connect_tcp("127.0.0.1", self.address.port) as stream:
            await stream.send(request.encode())
            answer = b""
            with anyio.fail_after(20):
                while not answer.endswith(GREETING):
                    answer += await stream.receive()
                for piece in pieces:
                    await stream.send(piece)
                await stream.send_eof()
                answer = b""
                try:
                    while True:
                        answer += await stream.receive()
                except (anyio.EndOfStream, anyio.BrokenResourceError):
                    return answer


@pytest.fixture
async def tunnels() -> AsyncIterator[Tunnels]:
    tunnels = Tunnels()
    (listener,) = (await anyio.create_tcp_listener(local_host="127.0.0.1")).listeners
    tunnels.port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # this is no Django
    private = (f"{HOST}:{tunnels.port}", f"127.0.0.1:{tunnels.port}")
    guard = AddressGuard(private, resolver=lambda _host, _port: ["127.0.0.1"])
    proxy = GuardedProxy(
        guard, allowed=lambda _host, _port: True, checks_names=True, on_refusal=tunnels.refusals.add
    )
    listening = socket.create_server(("127.0.0.1", 0))
    tunnels.address = ProxyAddress("127.0.0.1", listening.getsockname()[1], "")
    at_proxy = await anyio.abc.SocketListener.from_socket(listening)
    async with listener, at_proxy, anyio.create_task_group() as group:
        group.start_soon(listener.serve, tunnels.serve)
        group.start_soon(proxy.serve, at_proxy)
        yield tunnels
        group.cancel_scope.cancel()


RIGHT = hello(HOST)
ALLOWED = {
    "the same name": [RIGHT],
    "the same in capitals": [hello("ALLOWED.example")],
    "byte by byte": [bytes([each]) for each in RIGHT],
    "in many records": [records(RIGHT[5:], 7)],
    "another protocol": [b"SSH-2.0-x\r\n", b"\x16"],
    "one that only begins like TLS": [b"\x16\x04\x01"],
}
REFUSED = {
    "another name": ([hello("front.example")], "names 'front.example'"),
    "a name beneath": ([hello(f"x.{HOST}")], f"names 'x.{HOST}'"),
    "byte by byte": ([bytes([each]) for each in hello("front.example")], "names 'front.example'"),
    "in many records": ([records(hello("front.example")[5:], 7)], "names 'front.example'"),
    "none": ([hello(None)], "names no server"),
    "two": ([extended(RIGHT, 0, b"\0\x04\0\0\x01x")], "malformed"),
    "a name of another kind": ([extended(hello(None), 0, b"\0\x04\x01\0\x01x")], "malformed"),
    "hidden": ([extended(RIGHT, 0xFE0D, bytes(64))], "(ECH)"),
    "another message first": ([records(b"\0\0\0\0" + RIGHT[5:], 1000)], "malformed"),
    "endless": ([records(b"\x01\xff\xff\xff" + bytes(70_000), 16_384)], "too long"),
}


@pytest.mark.parametrize("pieces", ALLOWED.values(), ids=ALLOWED)
async def test_what_names_the_allowed_host_or_none_passes(
    tunnels: Tunnels, pieces: list[bytes]
) -> None:
    assert await tunnels.ask(*pieces) == b""
    assert (tunnels.received, tunnels.refusals.notes()) == (b"".join(pieces), ())


@pytest.mark.parametrize(("pieces", "why"), REFUSED.values(), ids=REFUSED)
async def test_what_names_another_server_never_arrives(
    tunnels: Tunnels, pieces: list[bytes], why: str
) -> None:
    assert await tunnels.ask(*pieces) == ALERT
    assert tunnels.received == b""
    (note,) = tunnels.refusals.notes()
    assert f"asked the proxy for {HOST}:{tunnels.port}" in note
    assert why in note


async def test_an_allowed_address_may_have_any_name(tunnels: Tunnels) -> None:
    assert await tunnels.ask(hello("db.internal"), host="127.0.0.1") == b""
    assert tunnels.received


def test_no_beginning_of_a_hello_passes() -> None:
    said = hello("front.example")
    assert {name_problem(said[:end], HOST) for end in range(len(said))} == {None}

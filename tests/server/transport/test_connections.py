"""Connections that hold a server up, and requests that two parsers could read differently."""

import json
import resource
import socket
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel import Server

from server.transport import connections
from server.transport.http import serve_one
from server.transport.middleware import Caller
from tests.server.transport.test_transports import HEADERS, TOKEN, Toy, toy

HEAD = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"
BODY = HEAD + b"Content-Length: 1000\r\n\r\n{"
HALVES = {
    "nothing": b"",
    "half a head": HEAD,
    "half a handshake of TLS": b"\x16\x03\x01",
    "half a body": BODY,
    "half a chunk": HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\n{",
    "requests ahead": (HEAD + b"Content-Length: 0\r\n\r\n") * 100,
}
TOKEN_LINE = f"\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
OPEN_FILES = 256
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "toy", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": META}}


@pytest.fixture(scope="module", params=[TOKEN, ""], ids=["token", "no token"])
def small(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Toy]:
    """A server that may open few files."""
    with toy("http", tmp_path_factory.mktemp("small"), HTTP__TOKEN=request.param) as server:
        limits = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (OPEN_FILES, limits[1]))
        yield server


def connected(server: Toy, sent: bytes = b"") -> socket.socket:
    address = urlsplit(server.url)
    opened = socket.create_connection((address.hostname, address.port or 0), timeout=20)
    opened.sendall(sent)
    return opened


def answer(server: Toy, sent: bytes) -> bytes:
    """All that comes until the server ends the connection."""
    with connected(server, sent) as opened:
        return b"".join(iter(lambda: opened.recv(65_536), b""))


@pytest.mark.slow
@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_whoever_sends_whole_requests_is_served_next_to_many_who_do_not(
    small: Toy, half: bytes
) -> None:
    headers = {
        **HEADERS,
        "Authorization": f"Bearer {TOKEN}",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/list",
    }
    with ExitStack() as held:
        for _ in range(5):
            for _ in range(OPEN_FILES // 4):
                held.enter_context(connected(small, half))
            response = httpx2.post(small.url, json=LIST, headers=headers, timeout=20)
            assert '"echo"' in response.text


def _request(message: dict[str, Any], **headers: str) -> bytes:
    """A whole request."""
    body = json.dumps(message).encode()
    kind = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
    given = {**HEADERS, "Host": "127.0.0.1", **kind, **headers}
    lines = [f"{name}: {value}\r\n".encode() for name, value in given.items()]
    length = f"Content-Length: {len(body)}\r\n\r\n".encode()
    return b"".join((b"POST /mcp HTTP/1.1\r\n", *lines, length, body))


def _begun(opened: socket.socket) -> bytes:
    """The head of the response."""
    said = b""
    while b"\r\n\r\n" not in said and (more := opened.recv(65_536)):
        said += more
    return said


@pytest.mark.slow
def test_requests_above_what_the_open_files_allow_are_refused_and_those_below_go_on(
    small: Toy,
) -> None:
    call = {"name": "wait", "arguments": {}, "_meta": META}
    waiting = _request(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
        **{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "wait"},
    )
    with ExitStack() as held:
        for number in range(OPEN_FILES - connections.OTHER_FILES):
            held.enter_context(connected(small, waiting))
            while small.notes.count("waiting") <= number:
                pass
        refused = answer(small, waiting)
    assert refused.startswith(b"HTTP/1.1 503 ")
    assert b"retry-after: 1\r\n" in refused
    listed = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
    with connected(small, _request(LIST, **listed)) as opened:
        assert _begun(opened).startswith(b"HTTP/1.1 200 ")


@pytest.mark.slow
def test_streams_leave_room_for_requests(small: Toy) -> None:
    hello = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "toy", "version": "1"},
    }
    first = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    headers = {**HEADERS, "Authorization": f"Bearer {TOKEN}"}
    got = []
    with ExitStack() as held, httpx2.Client(headers=headers, timeout=20) as web:
        for _ in range(OPEN_FILES // 4):
            response = web.post(small.url, json=first)
            session = response.headers["mcp-session-id"]
            lines = f"Accept: text/event-stream\r\nMcp-Session-Id: {session}"
            stream = held.enter_context(
                connected(small, HEAD.replace(b"POST", b"GET") + lines.encode() + TOKEN_LINE)
            )
            got.append(_begun(stream).split()[1])
        most = (OPEN_FILES - connections.OTHER_FILES) // 4
        assert got == [b"200"] * most + [b"405"] * (len(got) - most)
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert web.post(small.url, json=ping, headers={"mcp-session-id": session}).is_success


@pytest.mark.slow
def test_what_strangers_do_is_logged_once(tmp_path: Path) -> None:
    with toy("http", tmp_path) as server:
        for _ in range(20):
            answer(server, b"\x00garbage\r\n\r\n")
            connected(server, BODY).close()
        [line] = server.stop(15).splitlines()
    assert "Invalid HTTP request" in line


async def test_half_requests_end_and_what_is_answered_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.05)
    monkeypatch.setattr(connections, "BODY_SECONDS", 0.05)
    begun, go_on = anyio.Event(), anyio.Event()

    async def call_tool(_context: Any, _params: Any) -> types.CallToolResult:
        begun.set()
        await go_on.wait()
        return types.CallToolResult(content=[types.TextContent(type="text", text="done")])

    async def ended(address: str, sent: bytes) -> None:
        host, _, port = address.rpartition(":")
        async with await anyio.connect_tcp(host, int(port)) as stream:
            await stream.send(sent)
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    await stream.receive()

    async def call(client: Client) -> None:
        assert (await client.call_tool("wait", {})).content[0].text == "done"  # type: ignore[union-attr]  # ours

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[])

    server = Server("toy", on_call_tool=call_tool, on_list_tools=list_tools)
    whole = HEAD + f"Authorization: Bearer {TOKEN}\r\nContent-Length: 0\r\n\r\n".encode()
    with anyio.fail_after(20):
        async with (
            serve_one(server, Caller("ann", None), TOKEN) as address,
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=20) as web,
            Client(streamable_http_client(f"http://{address}/mcp", http_client=web)) as client,
            anyio.create_task_group() as group,
        ):
            group.start_soon(call, client)
            await begun.wait()
            async with anyio.create_task_group() as strangers:
                for half in (HEAD, BODY, whole + HEAD, BODY.replace(b"\r\n\r\n", TOKEN_LINE)):
                    strangers.start_soon(ended, address, half)
            go_on.set()


async def test_clients_that_find_no_place_wait_and_are_all_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "most_connections", lambda: 4)
    monkeypatch.setattr(connections, "GRACE_SECONDS", 60.0)  # a slow machine makes nobody late

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[])

    listed = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}
    async with (
        serve_one(Server("toy", on_list_tools=list_tools), Caller("ann", None), TOKEN) as address,
        AsyncExitStack() as held,
    ):
        host, _, port = address.rpartition(":")
        opened = [
            await held.enter_async_context(await anyio.connect_tcp(host, int(port)))
            for _ in range(12)
        ]
        for stream in opened:
            await stream.send(_request(LIST, **listed))
        with anyio.fail_after(20):
            answers = [await stream.receive() for stream in opened]
    assert {each.partition(b"\r\n")[0] for each in answers} == {b"HTTP/1.1 200 OK"}


UNSOUND = {
    "two framings": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "two framings, reversed": b"transfer-encoding: chunked\r\ncontent-length: 0\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 0\r\n\r\n",
    "two lengths in one": b"Content-Length: 0, 0\r\n\r\n",
    "a signed length": b"Content-Length: +0\r\n\r\n",
    "a length of nothing": b"Content-Length:\r\n\r\n",
    "chunked twice": b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "chunked not last": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "an unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a folded line": b"Content-Length: 0\r\nX-A: b\r\n c\r\n\r\n",
    "a folded coding": b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a bare line feed": b"Content-Length: 0\nX-A: b\r\n\r\n",
    "a bare carriage return": b"X-A: b\rContent-Length: 0\r\n\r\n",
    "an end of line feeds": b"Content-Length: 0\n\n",
    "a space before the colon": b"Content-Length : 0\r\n\r\n",
    "a space before the name": b" Content-Length: 0\r\n\r\n",
    "two hosts": b"Host: 127.0.0.1\r\nContent-Length: 0\r\n\r\n",
}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Toy]:
    with toy("http", tmp_path_factory.mktemp("plain")) as server:
        yield server


@pytest.mark.slow
@pytest.mark.parametrize("rest", UNSOUND.values(), ids=UNSOUND)
def test_a_request_that_could_be_read_as_another_is_refused_and_ends_the_connection(
    plain: Toy, rest: bytes
) -> None:
    smuggled = b"GET /smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    said = answer(plain, HEAD + rest + smuggled)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1 ") == 1


@pytest.mark.slow
def test_an_older_protocol_has_no_chunks(plain: Toy) -> None:
    head = HEAD.replace(b"HTTP/1.1", b"HTTP/1.0")
    said = answer(plain, head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 400 ")


@pytest.mark.slow
def test_whoever_is_refused_has_to_connect_again(small: Toy) -> None:
    said = answer(small, b"GET /mcp HTTP/1.1\r\nHost: localhost@evil.example\r\n\r\n" * 2)
    assert said.startswith(b"HTTP/1.1 421 ")
    assert said.count(b"HTTP/1.1 ") == 1

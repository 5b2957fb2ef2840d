import base64
import gc
import shutil
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, permutations, repeat
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import SocketAttribute, SocketStream

from tools.core.errors import InvalidArgumentsError, UnavailableError, UpstreamError
from tools.sandbox.web.client import WebClient
from tools.sandbox.web.guard import (
    MOST_RESOLUTIONS,
    AddressGuard,
    ForwardProxy,
    RefusedAddressError,
)

PUBLIC = ["93.184.216.34", "2606:4700::1111", "8.8.8.8"]
PRIVATE = [
    *("127.0.0.1", "::1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "169.254.169.254", "0.0.0.0"),  # noqa: S104  # refused
    *("::", "100.64.0.1", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "fd00::1"),
    *("fe80::1%lo", "fec0::1", "2002:7f00:1::", "2001:0:1::1", "ff02::1", "224.0.0.1"),
    *("198.18.0.1", "192.0.2.1", "168.63.129.16", "100.100.100.200", "fd00:ec2::254"),
]


def _peer(stream: SocketStream) -> tuple[str, int]:
    found = stream.extra(SocketAttribute.remote_address)  # noqa: S610  # it is no query
    assert isinstance(found, tuple)
    return found


def answering(*answers: list[str]) -> tuple[Callable[[str, int], list[str]], list[str]]:
    """A name server that gives these answers one after the other, then the last for ever."""
    looked_up: list[str] = []
    following: Iterator[list[str]] = chain(answers, repeat(answers[-1]))

    def resolve(host: str, _port: int) -> list[str]:
        looked_up.append(host)
        return next(following)

    return resolve, looked_up


@pytest.mark.parametrize("address", PRIVATE)
async def test_a_name_that_leads_to_a_private_address_is_refused(address: str) -> None:
    guard = AddressGuard(resolver=answering([address])[0])
    with pytest.raises(RefusedAddressError) as caught:
        await guard.connect("innocent.example", 80, timeout=5)
    assert "innocent.example:80" in caught.value.message
    assert any("requests.private" in action for action in caught.value.next_actions)


@pytest.mark.parametrize("address", PRIVATE)
@pytest.mark.parametrize("place", range(len(PUBLIC) + 1))
def test_one_private_address_among_public_ones_refuses_them_all(address: str, place: int) -> None:
    answer = [*PUBLIC[:place], address, *PUBLIC[place:]]
    with pytest.raises(RefusedAddressError):
        AddressGuard(resolver=answering(answer)[0]).resolve("mixed.example", 443)


def test_public_addresses_are_all_let_through_once_each() -> None:
    for answer in permutations([*PUBLIC, PUBLIC[0]], 4):
        found = AddressGuard(resolver=answering(list(answer))[0]).resolve("a.example", 443)
        assert sorted(map(str, found)) == sorted(PUBLIC)


async def test_a_name_is_looked_up_once_and_its_judged_address_is_asked(
    web: Any, site: Any
) -> None:
    site.routes["/"] = web.ok(b"secret")
    resolve, looked_up = answering(["127.0.0.1"], PUBLIC[:1])
    guard = AddressGuard([f"a.example:{site.port}"], resolver=resolve)
    stream = await guard.connect("a.example", site.port, timeout=5)
    assert _peer(stream) == ("127.0.0.1", site.port)
    await stream.aclose()
    assert looked_up == ["a.example"]


async def test_a_name_that_changes_after_the_check_reaches_a_naive_client_only(
    web: Any, site: Any
) -> None:
    site.routes["/"] = web.ok(b"secret")
    rebinding: list[list[str]] = [PUBLIC[:1], ["127.0.0.1"]]

    check, _ = answering(*rebinding)  # checked by one look, asked by another
    assert check("rebound.example", site.port) == PUBLIC[:1]
    second = check("rebound.example", site.port)[0]
    assert httpx2.get(f"http://{second}:{site.port}/").content == b"secret"
    site.asked.clear()

    for attempt in range(20):
        resolve, looked_up = answering(*rebinding[: attempt % 2 + 1])
        guard = AddressGuard(resolver=resolve)
        with pytest.raises((OSError, RefusedAddressError)):
            await guard.connect("rebound.example", site.port, timeout=0.05)
        assert len(looked_up) == 1
        with pytest.raises((OSError, RefusedAddressError)):
            guard.connect_blocking("rebound.example", site.port, timeout=0.05)
    assert site.asked == []


@pytest.mark.parametrize("host", ["0x7f.1", "2130706433", "127.1", "017700000001", "127.0.0.1."])
async def test_a_naive_check_lets_odd_literals_reach_loopback(
    web: Any, site: Any, host: str
) -> None:
    site.routes["/"] = web.ok(b"secret")
    refused_texts = {"127.0.0.1", "localhost", "::1", "0.0.0.0"}  # noqa: S104  # a naive list
    assert host not in refused_texts
    naive = host.rstrip(".")
    connection = socket.create_connection((naive, site.port))
    assert connection.getpeername() == ("127.0.0.1", site.port)
    connection.close()
    for ask in (AddressGuard().check, AddressGuard([f"127.0.0.1:{site.port}"]).check):
        with pytest.raises(InvalidArgumentsError):
            await ask(host, site.port)


def test_only_the_exact_host_and_port_may_be_private() -> None:
    guard = AddressGuard(
        ["LocalHost:8000", "[::1]:80", "10.0.0.1:1"], resolver=answering(["127.0.0.1"])[0]
    )
    assert guard.resolve("localhost", 8000)
    assert guard.resolve("LOCALHOST", 8000)
    assert guard.resolve("::1", 80)
    assert guard.resolve("[0:0::1]", 80)
    assert guard.resolve("10.0.0.1", 1)
    for host, port in [
        ("localhost", 8001),
        ("127.0.0.1", 8000),
        ("a.localhost", 8000),
        ("localhost.a", 8000),
        ("::1", 8000),
        ("10.0.0.1", 11),
        ("10.0.0.2", 1),
        ("::ffff:10.0.0.1", 1),
    ]:
        with pytest.raises(RefusedAddressError):
            guard.resolve(host, port)


@pytest.mark.parametrize(
    "entry", ["localhost", "*:80", "*.local:80", "localhost:0", "127.1:80", "::1:80"]
)
def test_what_may_be_private_is_named_exactly_or_not_at_all(entry: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        AddressGuard([entry])


async def test_an_address_that_does_not_answer_gives_way_to_the_next(site: Any) -> None:
    for dead in (["127.0.0.2"], ["127.0.0.2", "127.0.0.3", "::1"]):
        resolve, _ = answering([*dead, "127.0.0.1"])
        guard = AddressGuard([f"a.example:{site.port}"], resolver=resolve)
        stream = await guard.connect("a.example", site.port, timeout=5)
        assert _peer(stream)[0] == "127.0.0.1"
        await stream.aclose()
        guard.connect_blocking("a.example", site.port, timeout=5).close()


async def test_what_nobody_answers_says_why() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    guard = AddressGuard([f"127.0.0.1:{port}"])
    with pytest.raises(OSError, match="Connect"):
        await guard.connect("127.0.0.1", port, timeout=5)
    with pytest.raises(OSError, match="refused"):
        guard.connect_blocking("127.0.0.1", port, timeout=5)


async def test_a_peer_that_is_gone_at_once_leaves_no_connection_open() -> None:
    def reset() -> None:
        with suppress(OSError):  # until the listener is closed
            while True:
                peer, _ = listener.accept()
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                peer.close()

    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    guard = AddressGuard([f"127.0.0.1:{port}"])
    thread = threading.Thread(target=reset, daemon=True)
    thread.start()
    for _ in range(3_000):  # of which some are gone between the connection and the look at it
        with suppress(OSError):
            await (await guard.connect("127.0.0.1", port, timeout=5)).aclose()
    for _ in range(3_000):
        with suppress(OSError):
            guard.connect_blocking("127.0.0.1", port, timeout=5).close()
    listener.shutdown(socket.SHUT_RDWR)
    thread.join()
    listener.close()
    gc.collect()  # what is left open warns now


async def test_an_unknown_name_is_an_error_of_the_system() -> None:
    def unknown(_host: str, _port: int) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    with pytest.raises(socket.gaierror):
        await AddressGuard(resolver=unknown).connect("none.example", 80, timeout=5)
    with pytest.raises(OSError, match="no address"):
        await AddressGuard(resolver=answering([])[0]).check("none.example", 80)


async def test_a_look_up_that_hangs_is_left_behind_and_holds_nothing_up() -> None:
    ending = threading.Event()
    threads: list[str] = []

    def hang(host: str, _port: int) -> list[str]:
        if host == "hanging.example":
            threads.append(threading.current_thread().name)
            ending.wait(60)
        return PUBLIC[:1]

    guard = AddressGuard(resolver=hang)
    try:
        with pytest.raises(TimeoutError):
            await guard.connect("hanging.example", 80, timeout=0.05)
        assert [str(each) for each in await guard.check("other.example", 80)] == PUBLIC[:1]
        with pytest.raises(TimeoutError):
            guard.connect_blocking("hanging.example", 80, timeout=0.05)
        assert threads == ["toolcrib-resolver"] * 2
    finally:
        ending.set()


async def test_look_ups_that_hang_are_not_piled_up_without_end() -> None:
    ending, begun = threading.Event(), threading.Semaphore(0)

    def hang(_host: str, _port: int) -> list[str]:
        begun.release()
        ending.wait(60)
        return PUBLIC[:1]

    guard = AddressGuard(resolver=hang)
    try:
        for number in range(MOST_RESOLUTIONS):
            with anyio.move_on_after(0.001):
                await guard.check(f"a{number}.example", 80)
            assert await anyio.to_thread.run_sync(lambda: begun.acquire(timeout=10))
        with pytest.raises(UnavailableError):
            await guard.check("more.example", 80)
        assert str((await guard.check("8.8.8.8", 80))[0]) == "8.8.8.8"
    finally:
        ending.set()


def test_a_look_up_that_hangs_does_not_keep_the_process_from_ending() -> None:
    program = (
        "import threading, anyio\n"
        "from tools.sandbox.web.guard import AddressGuard\n"
        "hang = lambda host, port: threading.Event().wait()\n"
        "async def main():\n"
        "    with anyio.move_on_after(0.05):\n"
        "        await AddressGuard(resolver=hang).check('a.example', 80)\n"
        "anyio.run(main)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=30)


async def test_the_look_up_does_not_run_on_the_event_loop() -> None:
    where: list[int] = []

    def resolve(_host: str, _port: int) -> list[str]:
        where.append(threading.get_ident())
        return PUBLIC[:1]

    await AddressGuard(resolver=resolve).check("a.example", 80)
    assert where
    assert where[0] != threading.get_ident()


async def test_the_systems_resolver_knows_localhost(web: Any, site: Any) -> None:
    with pytest.raises(RefusedAddressError, match="loopback"):
        await AddressGuard().connect("localhost", site.port, timeout=5)
    stream = await AddressGuard([f"localhost:{site.port}"]).connect(
        "localhost", site.port, timeout=5
    )
    await stream.aclose()


OWN_ADDRESS = """
import subprocess, socket, anyio
from tools.sandbox.web.guard import AddressGuard, RefusedAddressError
subprocess.run("ip link set lo up && ip addr add 8.8.8.8/32 dev lo", shell=True, check=True)
listener = socket.create_server(("0.0.0.0", 8080))
socket.create_connection(("8.8.8.8", 8080)).close()  # as a naive client does
async def main():
    try:
        await AddressGuard().connect("8.8.8.8", 8080, timeout=5)
    except RefusedAddressError as error:
        print(error)
    try:
        AddressGuard().connect_blocking("8.8.8.8", 8080, timeout=5)
    except RefusedAddressError as error:
        print(error)
    await (await AddressGuard(["8.8.8.8:8080"]).connect("8.8.8.8", 8080, timeout=5)).aclose()
anyio.run(main)
"""


def test_this_machine_is_refused_by_its_public_address_too() -> None:
    unshare = shutil.which("unshare")
    if not unshare or not shutil.which("ip"):
        pytest.skip("needs a network of its own")
    apart = [unshare, "--map-root-user", "--net"]
    if subprocess.run([*apart, "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs user namespaces")
    done = subprocess.run(
        [*apart, sys.executable, "-c", OWN_ADDRESS], check=True, capture_output=True, timeout=60
    )
    assert done.stdout.count(b"8.8.8.8:8080 is this machine's own") == 2


def through(proxy: Any, *private: str, credentials: str = "", addresses: Any = None) -> WebClient:
    """A client that asks through a proxy on loopback."""

    def resolve(host: str, _port: int) -> list[str]:
        known = addresses or {}
        if host not in known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        found: list[str] = known[host]
        return found

    guard = AddressGuard(private, resolver=resolve)
    return WebClient(guard, proxy=f"http://{credentials}127.0.0.1:{proxy.port}", max_bytes=10_000)


NAMES = {"a.test": ["93.184.216.34"]}


async def test_a_request_is_made_by_the_proxy(web: Any) -> None:
    proxy = web.site()
    proxy.routes["http://a.test/b"] = web.ok(b"by proxy")
    client = through(proxy, addresses=NAMES)
    assert (await client.request("GET", "http://a.test/b?c")).content == b"by proxy"
    (asked,) = proxy.asked
    assert (asked.target, asked.headers["host"]) == ("http://a.test/b?c", "a.test")
    assert "proxy-authorization" not in asked.headers


async def test_only_the_proxy_is_given_its_credentials(web: Any) -> None:
    proxy = web.site()
    proxy.routes["http://a.test/"] = web.ok()
    await through(proxy, credentials="ann:p%40ss@", addresses=NAMES).request(
        "GET", "http://a.test/"
    )
    token = base64.b64encode(b"ann:p@ss").decode()
    assert proxy.asked[0].headers["proxy-authorization"] == f"Basic {token}"


async def test_https_goes_through_a_tunnel_and_the_server_is_given_no_credentials(
    web: Any, trusted: Any
) -> None:
    site = web.site(trusted.server("a.test"))
    site.routes["/"] = web.ok(b"private")
    tunnel = Tunnel(site.port)
    client = through(tunnel, credentials="ann:secret@", addresses=NAMES)
    response = await client.request("GET", f"https://a.test:{site.port}/")
    tunnel.close()
    assert response.content == b"private"
    assert tunnel.asked.startswith(f"CONNECT a.test:{site.port} HTTP/1.1\r\n".encode())
    assert b"Proxy-Authorization: Basic" in tunnel.asked
    assert "proxy-authorization" not in site.asked[0].headers


@pytest.mark.parametrize("status", [403, 407, 500, 502])
async def test_a_proxy_that_opens_no_tunnel_says_so(web: Any, status: int) -> None:
    proxy = web.site()
    proxy.routes["a.test:443"] = f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode()
    with pytest.raises(UpstreamError, match=f"by the proxy: it answers {status}"):
        await through(proxy, addresses=NAMES).request("GET", "https://a.test/")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://10.0.0.1/", "https://169.254.169.254/", "http://[::1]/",
        "https://[fd00:ec2::254]/", "http://inside.test/", "https://inside.test/",
    ],
)  # fmt: skip
async def test_a_proxy_is_not_asked_for_what_is_private(web: Any, url: str) -> None:
    proxy = web.site()
    addresses = NAMES | {"inside.test": ["93.184.216.34", "10.0.0.1"]}
    with pytest.raises(RefusedAddressError):
        await through(proxy, addresses=addresses).request("GET", url)
    assert proxy.asked == []


async def test_a_redirect_to_what_is_private_is_not_asked_of_a_proxy(web: Any) -> None:
    proxy = web.site()
    proxy.routes["http://a.test/"] = web.redirect("http://169.254.169.254/latest/meta-data/")
    with pytest.raises(RefusedAddressError):
        await through(proxy, addresses=NAMES).request("GET", "http://a.test/")
    assert len(proxy.asked) == 1


async def test_a_name_that_only_the_proxy_knows_is_asked_of_it(web: Any) -> None:
    proxy = web.site()
    proxy.routes["http://far.test/"] = web.ok(b"far")
    assert (await through(proxy).request("GET", "http://far.test/")).content == b"far"


async def test_what_may_be_private_is_asked_directly(web: Any) -> None:
    proxy, site = web.site(), web.site()
    site.routes["/"] = web.ok(b"direct")
    client = through(proxy, f"127.0.0.1:{site.port}")
    assert (await client.request("GET", site.url())).content == b"direct"
    assert proxy.asked == []


@pytest.mark.parametrize("text", ["ftp://p.test", "p.test:80", "http://127.1/", "http://p.test:0"])
def test_a_proxy_that_is_no_url_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        ForwardProxy.parse(text)


def test_credentials_are_not_shown() -> None:
    proxy = ForwardProxy.parse("http://ann:secret@p.test:8080")
    assert proxy is not None
    assert proxy.auth == (b"ann", b"secret")
    assert "secret" not in repr(proxy)
    assert ForwardProxy.parse("") is None


class Tunnel:
    """A proxy that opens one tunnel, to a port of loopback whatever is asked for."""

    def __init__(self, leads_to: int) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.asked = b""
        self._thread = threading.Thread(target=self._serve, args=(leads_to,))
        self._thread.start()

    def _serve(self, leads_to: int) -> None:
        connection, _ = self.listener.accept()
        with connection, socket.create_connection(("127.0.0.1", leads_to)) as server:
            while b"\r\n\r\n" not in self.asked:
                self.asked += connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            back = threading.Thread(target=_pump, args=(server, connection))
            back.start()
            _pump(connection, server)
            back.join()

    def close(self) -> None:
        self._thread.join()
        self.listener.close()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(65_536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:  # the other side has gone
        return

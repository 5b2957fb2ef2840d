from __future__ import annotations

import base64
import socket
import threading
from typing import Any

import pytest

from tools.core.errors import InvalidArgumentsError, UpstreamError
from tools.sandbox.web.client import WebClient
from tools.sandbox.web.guard import AddressGuard, RefusedAddressError
from tools.sandbox.web.proxy.forward_proxy import ForwardProxy

pytestmark = pytest.mark.anyio


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


PUBLIC = {"a.test": ["93.184.216.34"]}


async def test_a_request_is_made_by_the_proxy(web: Any) -> None:
    proxy = web.site()
    proxy.routes["http://a.test/b"] = web.ok(b"by proxy")
    client = through(proxy, addresses=PUBLIC)
    assert (await client.request("GET", "http://a.test/b?c")).content == b"by proxy"
    (asked,) = proxy.asked
    assert (asked.target, asked.headers["host"]) == ("http://a.test/b?c", "a.test")
    assert "proxy-authorization" not in asked.headers


async def test_only_the_proxy_is_given_its_credentials(web: Any) -> None:
    proxy = web.site()
    proxy.routes["http://a.test/"] = web.ok()
    await through(proxy, credentials="ann:p%40ss@", addresses=PUBLIC).request(
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
    client = through(tunnel, credentials="ann:secret@", addresses=PUBLIC)
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
        await through(proxy, addresses=PUBLIC).request("GET", "https://a.test/")


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://10.0.0.1/", "https://169.254.169.254/", "http://[::1]/",
        "https://[fd00:ec2::254]/", "http://inside.test/", "https://inside.test/",
    ],
)  # fmt: skip
async def test_a_proxy_is_not_asked_for_what_is_private(web: Any, url: str) -> None:
    proxy = web.site()
    addresses = PUBLIC | {"inside.test": ["93.184.216.34", "10.0.0.1"]}
    with pytest.raises(RefusedAddressError):
        await through(proxy, addresses=addresses).request("GET", url)
    assert proxy.asked == []


async def test_a_redirect_to_what_is_private_is_not_asked_of_a_proxy(web: Any) -> None:
    proxy = web.site()
    proxy.routes["http://a.test/"] = web.redirect("http://169.254.169.254/latest/meta-data/")
    with pytest.raises(RefusedAddressError):
        await through(proxy, addresses=PUBLIC).request("GET", "http://a.test/")
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

import ssl
import subprocess
import sys
import threading
from typing import Any

import anyio.to_thread
import httpcore2
import httpx2
import pytest

from tools.core.errors import DeadlineError, UnavailableError, UpstreamError


async def test_a_trusted_server_is_asked_by_the_name_it_was_judged_by(
    web: Any, trusted: Any
) -> None:
    names: list[str | None] = []
    context = trusted.server("a.test")
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    site = web.site(context)
    site.routes["/"] = web.ok(b"private")
    response = await web.get(site)
    assert response.content == b"private"
    assert site.asked[0].headers["host"] == f"a.test:{site.port}"
    assert names == ["a.test"]


async def test_an_address_is_trusted_by_its_own_certificate(web: Any, trusted: Any) -> None:
    site = web.site(trusted.server("127.0.0.1"))
    site.routes["/"] = web.ok(b"private")
    assert (await web.client("127.0.0.1").request("GET", site.url())).content == b"private"


@pytest.mark.parametrize(
    "names", [["b.test"], ["127.0.0.1"], ["*.a.test"], ["a.test.b.test"], ["*.test."], ["test"]]
)
async def test_a_certificate_of_another_name_is_refused(
    web: Any, trusted: Any, names: list[str]
) -> None:
    site = web.site(trusted.server(*names))
    site.routes["/"] = web.ok(b"private")
    with pytest.raises(UpstreamError, match=r"no TLS that can be trusted.*mismatch"):
        await web.get(site)
    assert site.asked == []


async def test_a_certificate_that_nobody_trusts_is_refused(web: Any, authority: Any) -> None:
    site = web.site(authority.server("a.test"))
    with pytest.raises(UpstreamError, match="no TLS that can be trusted"):
        await web.get(site)
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    site.routes["/"] = web.ok(b"private")
    assert httpx2.get(site.url(), verify=unverified).content == b"private"


async def test_an_expired_certificate_is_refused(web: Any, trusted: Any) -> None:
    site = web.site(trusted.server("a.test", days=-1))
    with pytest.raises(UpstreamError, match="expired"):
        await web.get(site)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_versions_of_today_are_spoken(
    web: Any, trusted: Any, version: ssl.TLSVersion
) -> None:
    context = trusted.server("a.test")
    context.minimum_version = context.maximum_version = version
    site = web.site(context)
    site.routes["/"] = web.ok(b"private" * 10_000)
    response = await web.get(site)
    assert len(response.content) == 70_000


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 400 Bad\r\n\r\n", b"\x15\x03\x01\0\x02\x02\x28", b"x" * 9_999]
)
async def test_what_is_no_tls_is_the_servers_failure(web: Any, site: Any, answer: bytes) -> None:
    site.greeting = answer
    with pytest.raises(UpstreamError):
        await web.client("a.test").request("GET", f"https://a.test:{site.port}/", timeout=10)


async def test_a_handshake_that_hangs_meets_the_deadline(web: Any) -> None:
    site = web.site()  # it waits for the end of a request that never comes
    with pytest.raises(DeadlineError):
        await web.client("a.test").request("GET", f"https://a.test:{site.port}/", timeout=0.2)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_from_https_to_http_carries_no_secret(
    web: Any, trusted: Any, status: int
) -> None:
    site, plain = web.site(trusted.server("a.test")), web.site()
    site.routes["/"] = web.redirect(plain.url("/", "a.test"), status)
    plain.routes["/"] = web.ok(b"plain")
    headers = {"Authorization": "Bearer secret", "Cookie": "secret", "X-Api-Key": "secret"}
    response = await web.get(site, headers=headers)
    assert response.content == b"plain"
    assert b"secret" in site.asked[0].raw
    assert b"secret" not in plain.asked[0].raw


async def test_certificates_are_loaded_once_and_not_on_the_event_loop(
    web: Any, trusted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    where: list[int] = []
    load = httpcore2.default_ssl_context

    def watched() -> ssl.SSLContext:
        where.append(threading.get_ident())
        return load()

    monkeypatch.setattr(httpcore2, "default_ssl_context", watched)
    site = web.site(trusted.server("a.test"))
    site.routes["/"] = web.ok()
    client = web.client("a.test")
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(client.request, "GET", site.url("/", "a.test"))
    assert len(where) == 1
    assert where[0] != threading.get_ident()


async def test_certificates_that_cannot_be_loaded_are_told(
    web: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    with pytest.raises(UnavailableError, match="certificates"):
        await web.client("a.test").request("GET", "https://a.test/")


def test_httpcore_is_loaded_by_a_thread() -> None:
    program = (
        "import sys, threading, anyio\n"
        "from tools.core.errors import UpstreamError\n"
        "from tools.sandbox.web.client import WebClient\n"
        "from tools.sandbox.web.guard import AddressGuard\n"
        "where = []\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'httpcore2': where.append(threading.current_thread())\n"
        "sys.meta_path.insert(0, Finder())\n"
        "async def main():\n"
        "    try: await WebClient(AddressGuard(['127.0.0.1:1'])).request('GET', 'http://127.0.0.1:1/')\n"
        "    except UpstreamError: pass\n"
        "anyio.run(main)\n"
        "assert where and threading.main_thread() not in where, where\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)

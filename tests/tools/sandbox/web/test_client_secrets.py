"""Secrets are put in at the socket, for their own hosts alone, and taken out of every answer."""

import gzip
import socket
from typing import Any

import anyio
import pytest

from tools.core.errors import (
    InvalidArgumentsError,
    PermissionDeniedError,
    ToolError,
    UnavailableError,
    UpstreamError,
)
from tools.sandbox.secrets.secrets import HostPattern, Secret, Secrets, Variable
from tools.sandbox.web.client import WebClient
from tools.sandbox.web.guard import AddressGuard

VALUE = "ghp_Zq81/xyz+Zq81=xyz"
SHOWN = "[secret:api]"
NAME = "api"


def secrets_for(*hosts: str, **more: Any) -> Secrets:
    parsed = tuple(map(HostPattern.parse, hosts))
    made = {"header": "Authorization", "form": "Bearer {secret}", **more}
    secret = Secret(name="api", origin=Variable("A"), hosts=parsed, **made)
    return Secrets([secret], environ={"A": VALUE})


class Place:
    """A server with TLS, a client that has a secret for it, and what the server was told."""

    def __init__(self, web: Any, trusted: Any, **more: Any) -> None:
        self.web = web
        self.site = web.site(trusted.server("a.test"))
        self.host = f"a.test:{self.site.port}"
        self.client: WebClient = web.client(
            "a.test", "b.test", secrets=secrets_for(self.host, **more)
        )

    def url(self, path: str = "/") -> str:
        return f"https://{self.host}{path}"

    async def ask(self, url: str, **more: Any) -> Any:
        return await self.client.request("GET", url, secret="api", **more)  # noqa: S106  # its name


@pytest.fixture
def place(web: Any, trusted: Any) -> Place:
    return Place(web, trusted)


def echo(asked: Any) -> bytes:
    """Whatever was said, in the head and in the body."""
    headers = [f"{name}: {value}" for name, value in asked.headers.items() if name != "host"]
    lines = [f"X-Echo-{each}" for each in headers]
    return _answer(asked.raw, *lines, f"X-{asked.headers['authorization'][7:11]}: 1")


def _answer(body: bytes, *headers: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


async def test_the_host_is_sent_the_secret_and_the_answer_has_it_nowhere(place: Place) -> None:
    place.site.routes["/"] = echo
    response = await place.ask(place.url())
    assert place.site.asked[0].headers["authorization"] == f"Bearer {VALUE}"
    assert VALUE not in repr(response)
    assert f"Authorization: Bearer {SHOWN}".encode() in response.content
    assert response.header("x-echo-authorization") == f"Bearer {SHOWN}"


async def test_a_request_that_does_not_name_it_is_sent_without(place: Place) -> None:
    place.site.routes["/"] = place.web.ok()
    await place.client.request("GET", place.url())
    assert "authorization" not in place.site.asked[0].headers


@pytest.mark.parametrize("pieces", [1, 2, 7, 1_000])
async def test_an_echo_in_pieces_or_compressed_is_cleaned(place: Place, pieces: int) -> None:
    body = (b"x" * 70_000 + VALUE.encode()) * 3 + b"end"
    packed = gzip.compress(body)
    size = -(-len(packed) // pieces)

    def dripping(_: Any) -> Any:
        yield b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
        for start in range(0, len(packed), size):
            part = packed[start : start + size]
            yield f"{len(part):x}\r\n".encode() + part + b"\r\n"
        yield b"0\r\n\r\n"

    place.site.routes["/"] = dripping
    content = (await place.ask(place.url())).content
    assert content == (b"x" * 70_000 + SHOWN.encode()) * 3 + b"end"


async def test_a_body_that_is_cut_within_it_shows_no_part_of_it(web: Any, trusted: Any) -> None:
    site = web.site(trusted.server("a.test"))
    secrets = secrets_for(f"a.test:{site.port}")
    client = web.client("a.test", secrets=secrets, max_bytes=20)
    site.routes["/"] = web.ok(b"x" * 10 + VALUE.encode() * 2)
    response = await client.request("GET", site.url("/", "a.test"), secret=NAME)
    assert response.content == (b"x" * 10 + SHOWN.encode())[:20]
    assert response.truncated


@pytest.mark.parametrize(
    "answer",
    [
        f"HTTP/1.1 {VALUE}\r\n\r\n",
        f"HTTP/1.1 200 OK\r\n{VALUE}\r\n\r\n",
        f"{VALUE}\r\n\r\n",
        f"HTTP/1.1 200 OK\r\nContent-Encoding: {VALUE}\r\nContent-Length: 1\r\n\r\nx",
        f"HTTP/1.1 200 OK\r\nContent-Length: {VALUE}\r\n\r\n",
        f"HTTP/1.1 302 Found\r\nLocation: ftp://{VALUE}/\r\nContent-Length: 0\r\n\r\n",
        f"HTTP/1.1 302 Found\r\nLocation: http://{'x' * 180}{VALUE} {VALUE}/\r\n\r\n",
    ],
)
async def test_an_error_that_quotes_the_server_does_not_quote_it(place: Place, answer: str) -> None:
    place.site.routes["/"] = answer.encode()
    with pytest.raises(ToolError) as error:
        await place.ask(place.url())
    assert VALUE[:12] not in str(error.value)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_within_the_origin_keeps_it(place: Place, status: int) -> None:
    place.site.routes |= {"/": place.web.redirect("/b", status), "/b": place.web.ok()}
    await place.ask(place.url())
    assert [each.headers["authorization"] for each in place.site.asked] == [f"Bearer {VALUE}"] * 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_another_origin_is_the_answer(
    place: Place, trusted: Any, status: int
) -> None:
    other, plain = place.web.site(trusted.server("a.test", "b.test")), place.web.site()
    client: WebClient = place.web.client(
        "a.test",
        "b.test",
        secrets=secrets_for(place.host, *(f"{name}.test:{other.port}" for name in "ab")),
    )
    for target in (
        other.url("/", "a.test"),
        other.url("/", "b.test"),
        plain.url("/", "a.test"),
        f"https://b.test:{place.site.port}/",
        f"http://a.test:{place.site.port}/",
    ):
        place.site.routes["/"] = place.web.redirect(target, status)
        response = await client.request("GET", place.url(), secret=NAME)
        assert (response.status, response.redirect_to) == (status, target)
    assert other.asked == plain.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "https://b.test:{port}/",
        "https://a.test.b.test:{port}/",
        "https://a.test/",
        "http://a.test:{port}/",
        "https://127.0.0.1:{port}/",
    ],
)
async def test_another_host_or_port_or_http_is_never_connected_to(
    web: Any, trusted: Any, url: str
) -> None:
    site = web.site(trusted.server("a.test", "b.test", "127.0.0.1"))
    secrets = secrets_for(f"a.test:{site.port}")
    guard = AddressGuard([f"b.test:{site.port}", "a.test:443"], resolver=web.resolve)
    client = WebClient(guard, secrets=secrets)
    with pytest.raises(PermissionDeniedError, match="The secret 'api' is"):
        await client.request("GET", url.format(port=site.port), secret=NAME)
    assert (site.asked, web.looked_up) == ([], [])


@pytest.mark.parametrize(
    "url",
    [
        "https://a.test@b.test:{port}/",
        "https://a.test.:{port}/",
        "https://a.test%2e:{port}/",
        "https://b.test\\@a.test:{port}/",
        "https://a.test:{port}#@b.test/",
    ],
)
async def test_a_confusing_url_reaches_nobody_else(place: Place, url: str) -> None:
    place.site.routes["/"] = place.web.ok()
    try:
        response = await place.ask(url.format(port=place.site.port))
    except (InvalidArgumentsError, PermissionDeniedError):
        assert place.site.asked == []
    else:
        assert response.url == place.url()
        assert [each.headers["host"] for each in place.site.asked] == [place.host]


async def test_the_name_of_a_host_is_compared_without_case(place: Place) -> None:
    place.site.routes["/"] = place.web.ok()
    await place.ask(place.url().replace("a.test", "A.TeSt"))
    assert place.site.asked[0].headers["authorization"] == f"Bearer {VALUE}"


@pytest.mark.parametrize("name", ["Authorization", "AUTHORIZATION", "Host", "Range"])
async def test_a_header_of_the_caller_cannot_stand_beside_it(place: Place, name: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=f"(?i){name}"):
        await place.ask(place.url(), headers={name: "mine"})
    assert place.site.asked == []


async def test_a_query_has_it_and_no_url_that_is_shown(web: Any, trusted: Any) -> None:
    place = Place(web, trusted, header="", query="api_key", form="{secret}")
    place.site.routes["/b"] = echo_target
    place.site.routes["/"] = lambda asked: web.redirect(asked.target.replace("/?", "/b?"))
    response = await place.ask(place.url("/?c=d"))
    first, second = place.site.asked
    sent = "api_key=ghp_Zq81%2Fxyz%2BZq81%3Dxyz"
    assert (first.target, second.target) == (f"/?c=d&{sent}", f"/b?c=d&{sent}")
    assert response.url == place.url(f"/b?c=d&api_key={SHOWN}")
    assert response.redirects == (place.url("/?c=d"),)
    assert "Zq81" not in repr(response)
    with pytest.raises(InvalidArgumentsError, match="api_key"):
        await place.ask(place.url("/?api_key=mine"))


def echo_target(asked: Any) -> bytes:
    return _answer(asked.target.encode(), f"X-Where: {asked.target}")


async def test_a_redirect_elsewhere_repeats_no_query_secret(web: Any, trusted: Any) -> None:
    place = Place(web, trusted, header="", query="api_key", form="{secret}")
    place.site.routes["/"] = lambda asked: web.redirect(f"https://b.test{asked.target}")
    response = await place.ask(place.url())
    assert response.redirect_to == f"https://b.test/?api_key={SHOWN}"
    assert "Zq81" not in repr(response)


async def test_http_is_for_private_addresses_of_the_settings_alone(web: Any, site: Any) -> None:
    site.routes["/"] = web.ok()
    secrets = secrets_for(f"a.test:{site.port}")
    await web.client("a.test", secrets=secrets).request("GET", site.url("/", "a.test"), secret=NAME)
    assert site.asked[0].headers["authorization"] == f"Bearer {VALUE}"


async def test_a_proxy_sees_it_neither_in_a_request_nor_beside_a_tunnel(
    web: Any, trusted: Any
) -> None:
    proxy, site = web.site(), web.site(trusted.server("a.test"))
    guard = AddressGuard(resolver=lambda *_: ["93.184.216.34"])
    secrets = secrets_for("a.test", "a.test:80", f"a.test:{site.port}")
    client = WebClient(guard, secrets=secrets, proxy=f"http://127.0.0.1:{proxy.port}")
    with pytest.raises(PermissionDeniedError, match="https"):
        await client.request("GET", "http://a.test/", secret=NAME)
    assert proxy.asked == []
    with pytest.raises(UpstreamError, match="proxy"):
        await client.request("GET", "https://a.test/", secret=NAME)
    assert VALUE.encode() not in proxy.asked[0].raw


async def test_a_server_without_a_trusted_certificate_is_not_told(web: Any, authority: Any) -> None:
    site = web.site(authority.server("a.test"))
    client = web.client("a.test", secrets=secrets_for(f"a.test:{site.port}"))
    with pytest.raises(UpstreamError, match="no TLS that can be trusted"):
        await client.request("GET", site.url("/", "a.test"), secret=NAME)
    assert site.asked == []


async def test_a_value_that_is_not_there_is_told_before_anything_is_connected_to() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0)
        where = f"127.0.0.1:{listener.getsockname()[1]}"
        secret = Secret(
            name="api", origin=Variable("A"), hosts=(HostPattern.parse(where),), header="X"
        )
        client = WebClient(AddressGuard([where]), secrets=Secrets([secret]))
        with pytest.raises(UnavailableError, match="variable A is not set"):
            await client.request("GET", f"http://{where}/", secret=NAME)
        with pytest.raises(BlockingIOError):
            listener.accept()


async def test_calls_at_once_are_given_each_its_own(place: Place, web: Any, trusted: Any) -> None:
    place.site.routes["/"] = echo
    answers: list[Any] = []

    async def ask(secret: str | None) -> None:
        answers.append((secret, await place.client.request("GET", place.url(), secret=secret)))

    place.site.routes["/"] = lambda asked: _answer(asked.raw)
    async with anyio.create_task_group() as group:
        for number in range(12):
            group.start_soon(ask, "api" if number % 2 else None)
    for secret, response in answers:
        assert (SHOWN.encode() in response.content) is (secret is not None)
    assert sum(VALUE.encode() in each.raw for each in place.site.asked) == 6

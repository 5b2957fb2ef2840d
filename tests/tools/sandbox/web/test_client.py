from contextlib import suppress
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.core.errors import InvalidArgumentsError, ToolError, UpstreamError
from tools.sandbox.web.guard import RefusedAddressError

SECRETS = {
    "Authorization": "Bearer sk-secret",
    "Cookie": "session=secret",
    "X-Api-Key": "secret",
    "Api-Key": "secret",
    "X-Auth-Token": "secret",
    "Private-Token": "secret",
    "X-Amz-Security-Token": "secret",
    "X-Csrf-Token": "secret",
    "X-Custom": "secret",
    "Referer": "https://a.test/secret",
    "Origin": "https://secret.test",
    "From": "secret@a.test",
    "If-Match": '"secret"',
    "X-Forwarded-For": "10.0.0.1",
}
HARMLESS = {"Accept": "text/csv", "Accept-Language": "de"}


async def test_a_request_is_sent_as_it_was_given(web: Any, site: Any) -> None:
    site.routes["/a/b"] = web.ok(b"hello", "X-Answer: yes", "X-Answer: no")
    client = web.client("a.test")
    sent = {"X-Given": "1", "Accept": "text/plain"}
    response = await client.request(
        "POST", site.url("/a/b?c=d", "a.test"), headers=sent, body=b"body"
    )
    assert (response.status, response.content, response.truncated) == (200, b"hello", False)
    assert response.url == site.url("/a/b?c=d", "a.test")
    assert response.header("x-answer") == "yes, no"
    (asked,) = site.asked
    assert (asked.method, asked.target, asked.body) == ("POST", "/a/b?c=d", b"body")
    assert asked.headers == {
        "host": f"a.test:{site.port}",
        "user-agent": "toolcrib",
        "accept": "text/plain",
        "accept-encoding": "gzip, deflate",
        "connection": "close",
        "content-length": "4",
        "x-given": "1",
    }


@pytest.mark.parametrize("method", ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"])
async def test_every_method_is_sent(web: Any, site: Any, method: str) -> None:
    site.routes["/"] = b"HTTP/1.1 204 No Content\r\n\r\n"
    assert (await web.client("a.test").request(method, site.url("/", "a.test"))).status == 204
    assert site.asked[0].method == method
    assert ("content-length" in site.asked[0].headers) is (method in {"PATCH", "POST", "PUT"})


@pytest.mark.parametrize(
    "method",
    [
        *("", "get", "GET ", "GET\r\nX: y", "G E T", "CONNECT", "TRACE"),
        *("GET /evil HTTP/1.1\r\nA:", "PROPFIND", "A" * 999, "\uff27ET", "GET\0"),
    ],
)
async def test_any_other_method_is_refused(web: Any, method: str) -> None:
    with pytest.raises(InvalidArgumentsError):
        await web.client("a.test").request(method, "https://a.test/")


@pytest.mark.parametrize("status", [200, 201, 204, 304, 400, 401, 403, 404, 410, 429, 500, 503])
async def test_any_status_is_an_answer(web: Any, site: Any, status: int) -> None:
    site.routes["/"] = f"HTTP/1.1 {status} Whatever\r\nContent-Length: 0\r\n\r\n".encode()
    response = await web.get(site)
    assert response.status == status


async def test_nothing_is_kept_from_one_request_to_the_next(web: Any, site: Any) -> None:
    site.routes["/"] = web.ok(b"", "Set-Cookie: session=1; Path=/", "Set-Cookie: b=2")
    client = web.client("a.test")
    for _ in range(3):
        response = await client.request("GET", site.url("/", "a.test"))
        assert response.header("set-cookie") == "session=1; Path=/, b=2"
    assert len(site.asked) == 3
    assert all("cookie" not in asked.headers for asked in site.asked)
    assert web.looked_up == ["a.test"] * 3  # judged each time


async def test_the_environments_proxies_and_netrc_are_ignored(
    web: Any, site: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    proxy = web.site()
    site.routes["/"] = web.ok(b"direct")
    (tmp_path / "netrc").write_text("machine a.test login ann password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    for name in (
        *("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"),
    ):
        monkeypatch.setenv(name, proxy.url("", "127.0.0.1"))
    httpx2.get(site.url("/", "a.test"))  # a naive client goes where the environment says
    assert len(proxy.asked) == 1
    assert (await web.get(site)).content == b"direct"
    assert len(proxy.asked) == 1
    assert "authorization" not in site.asked[0].headers


# Redirects


async def test_a_redirect_is_followed_and_remembered(web: Any, site: Any) -> None:
    site.routes |= {
        "/a": web.redirect("b?c"),
        "/b": web.redirect(f"//a.test:{site.port}/d", 301),
        "/d": web.ok(b"there"),
    }
    response = await web.get(site, "/a")
    assert (response.content, response.url) == (b"there", site.url("/d", "a.test"))
    assert response.redirects == (site.url("/a", "a.test"), site.url("/b?c", "a.test"))
    assert response.redirect_to is None


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(
    "target",
    [
        *("http://127.0.0.1:{}/", "http://[::1]:{}/", "http://localhost:{}/"),
        *("http://169.254.169.254/latest/meta-data/", "http://10.0.0.1/"),
        *("http://[::ffff:127.0.0.1]:{}/", "http://[64:ff9b::7f00:1]:{}/", "//127.0.0.1:{}/"),
        "https://100.100.100.200/",
    ],
)
async def test_a_redirect_to_a_private_address_is_refused(
    web: Any, site: Any, status: int, target: str
) -> None:
    inside = web.site()
    inside.routes["/"] = web.ok(b"secret")
    site.routes["/"] = web.redirect(target.format(inside.port), status)
    client = web.client("a.test")
    with pytest.raises(RefusedAddressError):
        await client.request("GET", site.url("/", "a.test"))
    assert inside.asked == []


async def test_a_naive_client_follows_a_redirect_to_loopback(web: Any, site: Any) -> None:
    inside = web.site()
    inside.routes["/"] = web.ok(b"secret")
    site.routes["/"] = web.redirect(inside.url("/"))
    assert httpx2.get(site.url("/"), follow_redirects=True).content == b"secret"


@pytest.mark.parametrize(
    "location",
    [
        *("ftp://a.test/", "file:///etc/passwd", "javascript:alert(1)", "http://u:p@a.test/"),
        *("/\\a.test", "http://127.1/", "http://0x7f.0.0.1/", "http://2130706433/"),
        *("http://a.test:0/", "http://a.test./", "http://[::1%25lo]/"),
        *("http://a.test\u00ad/", "http://\uff1127.0.0.1/", "/a b", "//", "/%2e%2e/b"),
        *("http:///b", "\x7f", "/" + "a" * 9_000),
    ],
)
async def test_a_redirect_to_somewhere_odd_is_the_servers_failure(
    web: Any, site: Any, location: str
) -> None:
    site.routes["/"] = web.redirect(location)
    with pytest.raises(UpstreamError, match="an invalid address") as caught:
        await web.get(site)
    assert len(caught.value.message) < 600


@pytest.mark.parametrize("hops", [0, 1, 4, 5])
async def test_as_many_redirects_are_followed_as_are_allowed(
    web: Any, site: Any, hops: int
) -> None:
    site.routes |= {f"/{n}": web.redirect(f"/{n + 1}") for n in range(hops)}
    site.routes[f"/{hops}"] = web.ok(b"end")
    response = await web.get(site, "/0")
    assert (response.content, len(response.redirects)) == (b"end", hops)


@pytest.mark.parametrize("allowed", [0, 1, 5])
async def test_more_redirects_are_the_servers_failure(web: Any, site: Any, allowed: int) -> None:
    site.routes |= {f"/{n}": web.redirect(f"/{n + 1}") for n in range(20)}
    with pytest.raises(UpstreamError, match=f"more than {allowed} times"):
        await web.get(site, "/0", max_redirects=allowed)
    assert len(site.asked) == allowed + 1


@pytest.mark.parametrize("circle", [["/"], ["/", "/a"], ["/", "/a", "/b"]])
async def test_redirects_in_a_circle_are_noticed(web: Any, site: Any, circle: list[str]) -> None:
    for here, there in zip(circle, [*circle[1:], circle[0]], strict=True):
        site.routes[here] = web.redirect(there)
    with pytest.raises(UpstreamError, match="circle"):
        await web.get(site)
    assert len(site.asked) == len(circle)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("other", ["host", "port"])
async def test_another_origin_is_given_no_secret(
    web: Any, site: Any, status: int, other: str
) -> None:
    elsewhere = web.site()
    host = "b.test" if other == "host" else "a.test"
    site.routes["/"] = web.redirect(elsewhere.url("/", host), status)
    elsewhere.routes["/"] = web.ok(b"there")
    client = web.client("a.test", "b.test")
    response = await client.request("GET", site.url("/", "a.test"), headers=SECRETS | HARMLESS)
    assert response.content == b"there"
    assert {name.lower() for name in SECRETS} <= site.asked[0].headers.keys()
    assert not {name.lower() for name in SECRETS} & elsewhere.asked[0].headers.keys()
    assert {name.lower() for name in HARMLESS} <= elsewhere.asked[0].headers.keys()
    assert b"secret" not in elsewhere.asked[0].raw


async def test_a_naive_client_gives_another_origin_what_it_does_not_know_to_be_secret(
    web: Any, site: Any
) -> None:
    elsewhere = web.site()
    site.routes["/"] = web.redirect(elsewhere.url("/"))
    elsewhere.routes["/"] = web.ok()
    httpx2.get(site.url("/"), headers=SECRETS, follow_redirects=True)
    assert b"secret" in elsewhere.asked[0].raw


async def test_a_secret_is_not_given_back_on_the_way_back(web: Any, site: Any) -> None:
    elsewhere = web.site()
    site.routes["/"] = web.redirect(elsewhere.url("/", "b.test"))
    elsewhere.routes["/"] = web.redirect(site.url("/end", "a.test"))
    site.routes["/end"] = web.ok(b"end")
    client = web.client("a.test", "b.test")
    await client.request("GET", site.url("/", "a.test"), headers=SECRETS)
    assert "authorization" in site.asked[0].headers
    assert b"secret" not in site.asked[1].raw


async def test_the_same_origin_is_given_the_headers_again(web: Any, site: Any) -> None:
    site.routes |= {"/": web.redirect("/end"), "/end": web.ok()}
    await web.get(site, headers=SECRETS)
    assert site.asked[1].headers == site.asked[0].headers


@pytest.mark.parametrize(
    ("status", "method", "becomes"),
    [
        *((status, "GET", "GET") for status in (301, 302, 303, 307, 308)),
        *((status, "HEAD", "HEAD") for status in (301, 302, 303, 307, 308)),
        *((status, "POST", "GET") for status in (301, 302, 303)),
        *((status, "POST", "POST") for status in (307, 308)),
        *((status, "PUT", "PUT") for status in (301, 302, 307, 308)),
        *((status, "DELETE", "DELETE") for status in (301, 302, 307, 308)),
        *((303, method, "GET") for method in ("PUT", "PATCH", "DELETE")),
    ],
)
async def test_a_redirect_changes_the_method_as_browsers_do(
    web: Any, site: Any, status: int, method: str, becomes: str
) -> None:
    site.routes |= {"/": web.redirect("/end", status), "/end": b"HTTP/1.1 204 None\r\n\r\n"}
    body = b"body" if method in {"POST", "PUT", "PATCH"} else None
    headers = {"Content-Type": "text/plain", "X-Other": "1"}
    await web.client("a.test").request(method, site.url("/", "a.test"), headers=headers, body=body)
    first, second = site.asked
    assert (first.method, second.method) == (method, becomes)
    assert second.body == (body or b"" if becomes == method else b"")
    assert ("content-type" in second.headers) is (becomes == method)
    assert "x-other" in second.headers


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
async def test_what_changes_something_is_not_repeated_at_another_origin(
    web: Any, status: int, method: str
) -> None:
    if method == "POST" and status in {301, 302}:
        pytest.skip("it becomes GET")
    site, elsewhere = web.site(), web.site()
    site.routes["/"] = web.redirect(elsewhere.url("/", "a.test"), status)
    elsewhere.routes["/"] = web.ok()
    response = await web.client("a.test").request(method, site.url("/", "a.test"), body=b"secret")
    assert (response.status, response.redirect_to) == (status, elsewhere.url("/", "a.test"))
    assert elsewhere.asked == []


async def test_a_redirect_that_is_not_wanted_is_the_answer(web: Any, site: Any) -> None:
    site.routes["/"] = b"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 4\r\n\r\nbody"
    response = await web.get(site, follows=lambda _here, _there: False)
    assert (response.status, response.content) == (302, b"body")
    assert response.redirect_to == site.url("/b", "a.test")
    assert len(site.asked) == 1


@pytest.mark.parametrize("status", [300, 304, 305, 306, 200])
async def test_a_location_alone_is_no_redirect(web: Any, site: Any, status: int) -> None:
    site.routes["/"] = web.redirect("/b", status)
    response = await web.get(site)
    assert (response.status, response.redirect_to) == (status, None)


# Injection


INJECTIONS = [
    "\r\nX-Evil: 1",
    "\nX-Evil: 1",
    "\rX-Evil: 1",
    "\0",
    "\x0b",
    "\x7f",
    "\u2028",
    "\u0085",
    "a\r\n\r\nGET /evil HTTP/1.1\r\n",
    "\r\n X",
    "嘊嘍X-Evil: 1",
]  # the last are LF and CR in their lower bytes


@pytest.mark.parametrize("evil", INJECTIONS)
@pytest.mark.parametrize("place", ["url", "name", "value", "method"])
async def test_nothing_is_injected_into_a_request(
    web: Any, site: Any, evil: str, place: str
) -> None:
    site.routes["/"] = web.ok()
    url = site.url("/", "a.test") + (evil if place == "url" else "")
    headers = {"X-A" + (evil if place == "name" else ""): "b" + (evil if place == "value" else "")}
    method = "GET" + (evil if place == "method" else "")
    with suppress(InvalidArgumentsError):
        await web.client("a.test").request(method, url, headers=headers)
    for asked in site.asked:  # what may stand in a URL stands there percent-encoded
        assert place == "url"
        assert (asked.raw.count(b"\r\n\r\n"), asked.raw.isascii()) == (1, True)
        assert "x-evil" not in asked.headers


FORBIDDEN = [
    *("Host", "Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "TE", "Trailer"),
    *("Upgrade", "Expect", "Proxy-Authorization", "Proxy-Connection", "Via", "Accept-Encoding"),
    *("hOsT", "transfer-ENCODING"),
]


@pytest.mark.parametrize("name", FORBIDDEN)
async def test_what_frames_a_message_is_not_the_callers(web: Any, site: Any, name: str) -> None:
    with pytest.raises(InvalidArgumentsError, match=name):
        await web.get(site, headers={name: "1"})
    assert site.asked == []


@pytest.mark.parametrize(
    "headers",
    [
        *({"": "a"}, {" ": "a"}, {"a b": "c"}, {"a:": "b"}, {":a": "b"}, {"ä": "b"}, {"a(": "b"}),
        *({"a\t": "b"}, {"a": "€"}, {"A": "1", "a": "2"}, {"a": "b" * 40_000}),
        {f"x{n}": "1" for n in range(65)},
    ],
)
async def test_headers_that_are_none_are_refused(web: Any, headers: dict[str, str]) -> None:
    with pytest.raises(InvalidArgumentsError):
        await web.client("a.test").request("GET", "http://a.test/", headers=headers)


@given(name=st.text(max_size=20), value=st.text(max_size=20))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_header_is_sent_as_it_is_or_refused(web: Any, name: str, value: str) -> None:
    site = web.sites[0] if web.sites else web.site()
    site.asked.clear()
    site.routes["/"] = web.ok()
    try:
        await web.get(site, headers={name: value})
    except ToolError:
        assert site.asked == []
        return
    (asked,) = site.asked
    assert asked.headers[name.lower()] == value.strip(" \t")
    assert len(asked.headers) in {5, 6}


async def test_requests_run_side_by_side(web: Any) -> None:
    import anyio  # this test alone

    site = web.site()
    site.routes["/"] = web.ok(b"x" * 100_000)
    client = web.client("a.test")
    answers = []

    async def ask() -> None:
        answers.append(await client.request("GET", site.url("/", "a.test")))

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(ask)
    assert [len(answer.content) for answer in answers] == [100_000] * 20
    await client.aclose()

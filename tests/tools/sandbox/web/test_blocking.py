import json
from typing import Any

import httpx2
import pytest

from storage.errors import StorageUnavailableError, VectorIndexError
from storage.index.embedders.base import EmbedderOptions
from storage.index.embedders.endpoint import Endpoint
from storage.index.embedders.making import OpenAIEmbedder
from storage.index.vectors import ChromaServer
from tools.core.errors import InvalidArgumentsError
from tools.sandbox.web.blocking import endpoint_client


def test_an_endpoint_of_the_settings_may_be_private(web: Any, site: Any) -> None:
    site.routes["/v1/embeddings"] = web.ok(
        json.dumps({"data": [{"index": 0, "embedding": [3.0, 4.0]}]}).encode()
    )
    options = EmbedderOptions(url=site.url("/v1"), model="m", api_key="sk-secret")
    embedder = OpenAIEmbedder(options, endpoint_client)
    assert embedder.embed_query("heron").tolist() == pytest.approx([0.6, 0.8])
    assert site.asked[0].headers["authorization"] == "Bearer sk-secret"
    assert site.asked[0].headers["host"] == f"127.0.0.1:{site.port}"


def test_only_its_own_host_and_port_are_asked(web: Any, site: Any) -> None:
    other = web.site()
    with endpoint_client(site.url()) as client:
        for url in (other.url(), site.url("/", "localhost"), site.url("/", "[::ffff:127.0.0.1]")):
            with pytest.raises(httpx2.RequestError, match="not a public address"):
                client.get(url)
    assert site.asked == other.asked == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_other_address_is_given_the_token(web: Any, site: Any, status: int) -> None:
    other = web.site()
    site.routes["/"] = web.redirect(other.url(), status)
    endpoint = Endpoint(site.url(), "sk-secret", timeout=5, client=endpoint_client)
    with pytest.raises(StorageUnavailableError, match=f"answered {status}"):
        endpoint.post({})
    assert other.asked == []


@pytest.mark.parametrize("host", ["127.1", "0x7f.0.0.1", "2130706433", "127.0.0.1."])
def test_an_odd_host_is_refused(site: Any, host: str) -> None:
    with pytest.raises((InvalidArgumentsError, httpx2.InvalidURL)):
        endpoint_client(site.url("/", host))
    with pytest.raises(StorageUnavailableError, match="fails"):
        Endpoint(site.url("/", host), "", timeout=5, client=endpoint_client).post({})
    assert site.asked == []


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nX-A: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_a_dripping_answer_meets_the_deadline(site: Any, start: bytes) -> None:
    site.routes["/"] = site.drip(start, b"x")
    endpoint = Endpoint(site.url(), "", timeout=1, client=endpoint_client)
    with pytest.raises(StorageUnavailableError, match="did not respond within 1 s"):
        endpoint.post({})


@pytest.mark.parametrize(
    "answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"]
)
def test_nonsense_is_an_endpoint_that_cannot_be_reached(site: Any, answer: bytes) -> None:
    site.routes["/"] = answer
    with pytest.raises(StorageUnavailableError, match="cannot be reached"):
        Endpoint(site.url(), "", timeout=0.3, client=endpoint_client).post({})


def test_the_environments_proxies_are_ignored(
    web: Any, site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = web.site()
    site.routes["/"] = web.ok(b"direct")
    monkeypatch.setenv("HTTP_PROXY", proxy.url())
    monkeypatch.setenv("http_proxy", proxy.url())
    assert Endpoint(site.url(), "", timeout=5, client=endpoint_client).post({}) == b"direct"
    assert Endpoint(site.url(), "", timeout=5).post({}) == b"direct"
    assert proxy.asked == []


@pytest.mark.parametrize(
    ("host", "is_near"),
    [("far.test", False), ("93.184.216.34", False), ("127.0.0.1", True), ("near.test", True)],
)
def test_the_proxy_of_the_settings_asks_what_is_not_near(
    web: Any, host: str, is_near: bool
) -> None:
    proxy = web.site()
    proxy.routes[f"http://{host}:9/"] = web.ok(b"by proxy")
    with endpoint_client(
        f"http://{host}:9/", private=["near.test:9"], proxy=f"http://ann:pw@127.0.0.1:{proxy.port}"
    ) as client:
        if is_near:
            with pytest.raises(httpx2.ConnectError):
                client.get(f"http://{host}:9/")
            assert proxy.asked == []
        else:
            assert client.get(f"http://{host}:9/").content == b"by proxy"
            assert "proxy-authorization" in proxy.asked[0].headers


def test_an_endpoint_is_asked_over_tls(web: Any, trusted: Any, authority: Any) -> None:
    site, other = web.site(trusted.server("127.0.0.1")), web.site(trusted.server("b.test"))
    site.routes["/"] = other.routes["/"] = web.ok(b"private")
    assert Endpoint(site.url(), "", timeout=5, client=endpoint_client).post({}) == b"private"
    with pytest.raises(StorageUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
        Endpoint(other.url(), "", timeout=1, client=endpoint_client).post({})


def test_a_connection_that_its_server_closed_is_not_used_again(web: Any, site: Any) -> None:
    site.routes["/"] = web.ok(b"fine")
    endpoint = Endpoint(site.url(), "", timeout=5, client=endpoint_client)
    assert [endpoint.post({"n": number}) for number in range(5)] == [b"fine"] * 5


def test_chromas_heartbeat_is_asked_by_the_client_that_is_handed_down(site: Any) -> None:
    with pytest.raises(VectorIndexError, match="answered 404"):
        ChromaServer(site.url(""), endpoint_client).open()
    assert site.asked[0].target == "/api/v2/heartbeat"

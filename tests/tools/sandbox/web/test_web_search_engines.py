import gc
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from email.utils import formatdate
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import anyio
import primp
import pytest
from anyio.abc import SocketAttribute, SocketStream
from ddgs.base import BaseSearchEngine
from ddgs.engines import ENGINES
from ddgs.results import TextResult
from hypothesis import given
from hypothesis import strategies as st

from tools.core.errors import InvalidArgumentsError, ToolError
from tools.sandbox.web.ddgs_engines import MAX_PAGE, DdgsEngine, engine_names
from tools.sandbox.web.guard import AddressGuard
from tools.sandbox.web.search_engine import (
    Language,
    SearchQuery,
    SearchResult,
    distinct,
    plain_text,
    retry_after,
)
from tools.sandbox.web.web_search import Found, SearchPace, WebSearch, make_search

BROKEN = (anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError, OSError)
QUERY = "slow kites"
QUICK = SearchPace(first_wait=0.0, engine_seconds=5.0, seconds=15.0)
HASTY = SearchPace(first_wait=0.0, engine_seconds=0.3, seconds=0.7, attempts=2)
PROVIDERS = ("ddgs", "searxng", "brave")

Answer = bytes | Callable[[SocketStream], Any]


class Site:
    """A search engine on loopback: each request is answered with the next of its answers."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.asked: list[str] = []
        self.heads: list[str] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def speak(self, stream: SocketStream) -> None:
        head = b""
        with suppress(*BROKEN):
            while b"\r\n\r\n" not in head:
                head += await stream.receive()
        if b"\r\n\r\n" not in head:  # a client whose time ran out first
            return
        self.heads.append(head.decode("latin-1"))
        self.asked.append(head.split(b" ")[1].decode())
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        with suppress(*BROKEN):
            if isinstance(answer, bytes):
                await stream.send(answer)
            else:
                await answer(stream)

    def parameters(self) -> dict[str, str]:
        """Of the last request."""
        return {key: each[0] for key, each in parse_qs(urlsplit(self.asked[-1]).query).items()}


@asynccontextmanager
async def listening(site: Site) -> AsyncIterator[Site]:
    async def handle(stream: SocketStream) -> None:
        async with stream:
            await site.speak(stream)

    (listener,) = (await anyio.create_tcp_listener(local_host="127.0.0.1")).listeners
    async with listener, anyio.create_task_group() as group:
        site.port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # this is no Django
        group.start_soon(listener.serve, handle)
        yield site
        group.cancel_scope.cancel()


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with listening(Site()) as site:
        yield site


class Fake(BaseSearchEngine[TextResult]):
    """An engine of ddgs on loopback."""

    name = "fake"
    category = "text"
    provider = "fake"
    search_method = "GET"
    items_xpath = "//li"
    elements_xpath: ClassVar[dict[str, str]] = {
        "title": ".//h2//text()",
        "href": ".//a/@href",
        "body": ".//p//text()",
    }

    def build_payload(
        self,
        query: str,
        region: str,
        safesearch: str,  # noqa: ARG002  # as ddgs has it
        timelimit: str | None,
        page: int = 1,
        **kwargs: str,  # noqa: ARG002  # the same
    ) -> dict[str, Any]:
        return {"q": query, "region": region, "time": timelimit or "", "page": str(page)}


@pytest.fixture(autouse=True)
def fakes() -> Iterator[Callable[[str, Site], None]]:
    """Makes a site an engine of ddgs."""
    added: list[str] = []

    def fake(name: str, site: Site) -> None:
        ENGINES["text"][name] = type(
            "Named", (Fake,), {"name": name, "search_url": f"{site.url}/search"}
        )
        added.append(name)

    yield fake
    for name in added:
        ENGINES["text"].pop(name, None)


def page(*results: tuple[str, str, str], query: str = QUERY) -> bytes:
    items = "".join(
        f"<li><h2>{title}</h2><a href='{url}'>go</a><p>{text}</p></li>"
        for title, url, text in results
    )
    return f"<html><body><input value='{query}'><ul>{items}</ul></body></html>".encode()


def answer(body: bytes, status: int = 200, **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def results(provider: str, *found: tuple[str, str, str]) -> bytes:
    """What an engine answers that finds these titles, URLs and texts."""
    match provider:
        case "ddgs":
            return answer(page(*found))
        case "searxng":
            listed: Any = {
                "query": QUERY,
                "results": [
                    {"title": title, "url": url, "content": text, "engine": "bing", "score": 1.0}
                    for title, url, text in found
                ],
                "unresponsive_engines": [],
            }
        case _:
            pages = [
                {"title": title, "url": url, "description": text, "type": "search_result"}
                for title, url, text in found
            ]
            listed = {"type": "search", "query": {}, "web": {"results": pages}}
            if not pages:
                del listed["web"]
    return answer(json.dumps(listed).encode())


ONE = ("Kites", "https://kites.example/slow", "About slow kites")


Searching = Callable[..., WebSearch]


@pytest.fixture
def searching(site: Site, fakes: Callable[[str, Site], None]) -> Searching:
    """Makes searches that ask the site."""
    fakes("fake", site)

    def make(provider: str, pace: SearchPace = QUICK) -> WebSearch:
        return make_search(
            provider=provider,
            engines=["fake"],
            url="" if provider == "ddgs" else site.url,
            api_key="brave-key",
            private=[f"127.0.0.1:{site.port}"] if provider == "ddgs" else [],
            pace=pace,
        )

    return make


async def outcome(search: WebSearch, query: str = QUERY, **options: Any) -> Found | ToolError:
    """What a search comes to, in whatever way."""
    try:
        with anyio.fail_after(30):
            return await search.search(query, **options)
    except ToolError as error:
        return error
    finally:
        await search.aclose()


def kind(found: Found | ToolError) -> str:
    if isinstance(found, Found):
        return "found"
    assert found.next_actions
    return found.error_type


@pytest.fixture(params=PROVIDERS)
def provider(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


# What engines answer


async def test_results_are_found(provider: str, site: Site, searching: Searching) -> None:
    site.answers = [results(provider, ONE, ("Two", "https://two.example/?a=%26b&c", ""))]
    found = await outcome(searching(provider), max_results=20)
    source = {"ddgs": "fake", "searxng": "bing", "brave": "brave"}[provider]
    assert isinstance(found, Found)
    assert found.engine == {"ddgs": "fake"}.get(provider, provider)
    assert found.results == (
        SearchResult("Kites", "About slow kites", "https://kites.example/slow", source),
        SearchResult("Two", "", "https://two.example/?a=%26b&c", source),
    )


async def test_nothing_found_is_no_failure(provider: str, site: Site, searching: Searching) -> None:
    site.answers = [results(provider)]
    found = await outcome(searching(provider))
    assert isinstance(found, Found)
    assert found.results == ()
    assert len(site.asked) == 1


async def test_what_is_asked_is_asked_in_the_engines_words(
    provider: str, site: Site, searching: Searching
) -> None:
    site.answers = [results(provider, ONE)]
    search = searching(provider)
    await outcome(search, "a+b & c=ü", max_results=7, lang="PT_br", timelimit="w", page=3)
    asked = site.parameters()
    assert asked["q"] == "a+b & c=ü"
    expected = {
        "ddgs": {"region": "br-pt", "time": "w", "page": "3"},
        "searxng": {"format": "json", "language": "pt-BR", "time_range": "week", "pageno": "3"},
        "brave": {
            "search_lang": "pt-br",
            "country": "BR",
            "freshness": "pw",
            "offset": "2",
            "count": "7",
            "text_decorations": "false",
        },
    }[provider]
    assert {key: asked[key] for key in expected} == expected
    assert ("x-subscription-token: brave-key" in site.heads[-1].lower()) is (provider == "brave")


def limited(**headers: str) -> bytes:
    return answer(b"Too many requests", 429, **headers)


async def hang(stream: SocketStream) -> None:
    await stream.receive()


async def drip(stream: SocketStream) -> None:
    await stream.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        await stream.send(b"x")
        with anyio.move_on_after(0.02):
            await anyio.sleep_forever()


async def drip_head(stream: SocketStream) -> None:
    await stream.send(b"HTTP/1.1 200 OK\r\n")
    while True:
        await stream.send(b"X: y\r\n")
        with anyio.move_on_after(0.02):
            await anyio.sleep_forever()


async def hang_up(stream: SocketStream) -> None:
    await stream.aclose()


FAILURES: dict[str, tuple[str, Answer]] = {
    "429": ("rate_limited", limited()),
    "429 for an hour": ("rate_limited", limited(Retry_After="3600")),
    "429 until a date": (
        "rate_limited",
        limited(Retry_After=formatdate(4_000_000_000, usegmt=True)),
    ),
    "429 until no date": ("rate_limited", limited(Retry_After="tomorrow")),
    "500": ("upstream_failed", answer(b"oops", 500)),
    "502": ("upstream_failed", answer(b"oops", 502)),
    "503": ("upstream_failed", answer(b"oops", 503)),
    "418": ("upstream_failed", answer(b"oops", 418)),
    "204": ("upstream_failed", answer(b"", 204)),
    "no page": ("upstream_failed", answer(b"")),
    "zeros": ("upstream_failed", answer(b"\0" * 1_000)),
    "random bytes": ("upstream_failed", answer(bytes(range(256)) * 10)),
    "another page": ("upstream_failed", answer(b"<html><body>Welcome!</body></html>")),
    "half a page": ("upstream_failed", answer(page(ONE)).replace(b"Length: ", b"Length: 9")),
    "no HTTP": ("upstream_failed", b"SSH-2.0-OpenSSH_9.9\r\n"),
    "no answer": ("upstream_failed", hang_up),
    "a hang": ("timeout", hang),
    "a slow drip": ("timeout", drip),
    "a slow head": ("timeout", drip_head),
    "a redirect in a circle": ("upstream_failed", answer(b"", 302, Location="/search?q=1")),
    "a redirect to a file": ("upstream_failed", answer(b"", 302, Location="file:///etc/passwd")),
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_each_failure_is_told_from_the_others(
    provider: str, site: Site, searching: Searching, failure: str
) -> None:
    expected, said = FAILURES[failure]
    site.answers = [said]
    pace = HASTY if expected == "timeout" else QUICK
    found = await outcome(searching(provider, pace))
    assert kind(found) == expected
    assert "brave-key" not in str(found)


@pytest.mark.parametrize(
    "case",
    [
        ("ddgs", answer(b"", 202), "rate_limited", ""),
        ("ddgs", answer(page(), 202), "rate_limited", ""),
        ("ddgs", answer(b"Forbidden", 403), "rate_limited", ""),
        ("ddgs", answer(b"<div class='g-recaptcha'></div>"), "rate_limited", ""),
        ("ddgs", answer(b"<form id='challenge-form'>"), "rate_limited", ""),
        ("ddgs", answer(b"<div class='anomaly-modal__title'>"), "rate_limited", ""),
        ("ddgs", answer(b"Our systems have detected unusual traffic"), "rate_limited", ""),
        ("ddgs", answer(b"Confirm that you are not a robot"), "rate_limited", ""),
        ("ddgs", answer(page(ONE) + b" " * MAX_PAGE), "upstream_failed", ""),
        ("ddgs", answer(b"<div>" * 200_000), "upstream_failed", ""),
        ("ddgs", answer(b'{"results": []}'), "found", ""),
        ("ddgs", answer(page(ONE), Content_Type="text/html; charset=nonsense"), "found", ""),
        ("ddgs", answer(page(query="&#115;low &#107;ites")), "found", ""),
        ("searxng", answer(b"Forbidden", 403), "unavailable", "search.formats in its settings.yml"),
        ("searxng", answer(b"Nothing here", 404), "unavailable", "web_search.url"),
        ("searxng", answer(b"{}"), "upstream_failed", "not a list of results"),
        ("searxng", answer(b"[]"), "upstream_failed", "not a list of results"),
        ("searxng", answer(b'{"results": 3}'), "upstream_failed", "not a list of results"),
        ("searxng", answer(b'{"results": [{"url": 3, "title": null}]}'), "found", ""),
        (
            "searxng",
            answer(b'{"results": [], "unresponsive_engines": [["bing", "timeout"]]}'),
            "upstream_failed",
            "engines behind it",
        ),
        (
            "searxng",
            answer(b'{"results": [' + b" " * 4_000_000 + b"]}"),
            "upstream_failed",
            "not a list of results",
        ),
        ("brave", answer(b"", 401), "unavailable", "web_search.api_key"),
        ("brave", answer(b"", 402), "unavailable", "web_search.api_key"),
        ("brave", answer(b"", 403), "unavailable", "web_search.api_key"),
        (
            "brave",
            answer(b'{"error": {"code": "SUBSCRIPTION_TOKEN_INVALID"}}', 422),
            "unavailable",
            "web_search.api_key",
        ),
        ("brave", answer(b'{"error": {"code": "VALIDATION"}}', 422), "upstream_failed", "422"),
        (
            "brave",
            limited(X_RateLimit_Remaining="1, 0", X_RateLimit_Reset="1, 1419704"),
            "rate_limited",
            "1419704 seconds",
        ),
        (
            "brave",
            limited(X_RateLimit_Remaining="0, 0", X_RateLimit_Reset="1, 70"),
            "rate_limited",
            "70 seconds",
        ),
        (
            "brave",
            limited(X_RateLimit_Remaining="x", X_RateLimit_Reset=""),
            "rate_limited",
            "few minutes",
        ),
        ("brave", answer(b'{"type": "search"}'), "found", ""),
        ("brave", answer(b'{"type": "ErrorResponse"}'), "found", ""),
        ("brave", answer(b"null"), "upstream_failed", "not a list of results"),
    ],
    ids=range(32),
)
async def test_an_answer_is_seen_for_what_it_is(
    site: Site, searching: Searching, case: tuple[str, bytes, str, str]
) -> None:
    provider, said, expected, told = case
    site.answers = [said]
    found = await outcome(searching(provider))
    assert kind(found) == expected
    if isinstance(found, ToolError):
        assert told in " ".join([found.message, *found.next_actions])


# Attempts


@pytest.mark.parametrize("status", [500, 502, 503, 504])
async def test_what_fails_for_a_moment_is_asked_again(
    provider: str, site: Site, searching: Searching, status: int
) -> None:
    site.answers = [answer(b"", status), answer(b"", status), results(provider, ONE)]
    assert kind(await outcome(searching(provider))) == "found"
    assert len(site.asked) == 3


async def test_a_short_limit_is_waited_for(provider: str, site: Site, searching: Searching) -> None:
    site.answers = [limited(Retry_After="0"), results(provider, ONE)]
    assert kind(await outcome(searching(provider))) == "found"


async def test_a_long_limit_is_told_and_not_asked_again(
    provider: str, site: Site, searching: Searching
) -> None:
    site.answers = [limited(Retry_After="61"), results(provider, ONE)]
    found = await outcome(searching(provider))
    assert isinstance(found, ToolError)
    assert "Wait 61 seconds" in " ".join(found.next_actions)
    assert len(site.asked) == 1


async def test_our_own_limit_is_told(provider: str, site: Site, searching: Searching) -> None:
    site.answers = [results(provider, ONE)]
    pace = SearchPace(per_minute=2, turn_seconds=0.01)
    search = searching(provider, pace)
    kinds = [kind(await outcome(search)) for _ in range(4)]
    assert kinds == ["found", "found", "rate_limited", "rate_limited"]
    refused = await outcome(search)
    assert isinstance(refused, ToolError)
    assert "Wait 30 seconds" in " ".join(refused.next_actions)
    assert len(site.asked) == 2


# Engines in turn


@pytest.mark.parametrize("failure", [*FAILURES, "nothing found"])
async def test_the_second_engine_is_asked_where_the_first_has_nothing(
    site: Site, fakes: Callable[[str, Site], None], failure: str
) -> None:
    async with listening(Site()) as second:
        site.answers = [FAILURES[failure][1] if failure in FAILURES else answer(page())]
        second.answers = [answer(page(ONE))]
        fakes("first", site)
        fakes("second", second)
        search = make_search(
            provider="ddgs",
            engines=["first", "second"],
            private=[f"127.0.0.1:{site.port}", f"127.0.0.1:{second.port}"],
            pace=SearchPace(engine_seconds=1.0, first_wait=0.0),
        )
        found = await outcome(search)
    assert isinstance(found, Found)
    assert found.engine == "second"
    assert len(second.asked) == 1


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (answer(b"", 500), limited(), "rate_limited"),
        (limited(), answer(b"", 500), "rate_limited"),
        (answer(b"", 500), hang, "timeout"),
        (answer(b"", 500), answer(b"", 502), "upstream_failed"),
        (answer(b"", 500), answer(page()), "found"),
        (answer(page()), limited(), "found"),
        (answer(page()), answer(page()), "found"),
    ],
    ids=range(7),
)
async def test_of_several_failures_the_most_telling_is_told(
    site: Site, fakes: Callable[[str, Site], None], first: Answer, second: Answer, expected: str
) -> None:
    async with listening(Site()) as other:
        site.answers, other.answers = [first], [second]
        fakes("first", site)
        fakes("second", other)
        search = make_search(
            provider="ddgs",
            engines=["first", "second"],
            private=[f"127.0.0.1:{site.port}", f"127.0.0.1:{other.port}"],
            pace=SearchPace(engine_seconds=0.5, first_wait=0.0, attempts=1),
        )
        found = await outcome(search)
    assert kind(found) == expected
    if isinstance(found, ToolError):
        assert "first" in found.message
        assert "second" in found.message
    else:
        assert found.results == ()


@pytest.mark.parametrize("wrong", ["nosuch", "auto", "all", "google", "", "Duckduckgo", "fake "])
async def test_an_engine_that_does_not_exist_is_never_another_one(
    site: Site, fakes: Callable[[str, Site], None], wrong: str
) -> None:
    fakes("fake", site)
    site.answers = [answer(page(ONE))]
    for engines in ([wrong], ["fake", wrong], [wrong, "fake"]):
        search = make_search(
            provider="ddgs", engines=engines, private=[f"127.0.0.1:{site.port}"], pace=QUICK
        )
        refused = await outcome(search)
        assert isinstance(refused, ToolError)
        assert refused.error_type == "unavailable"
        assert repr(wrong) in refused.message
        assert "duckduckgo" in refused.suggestions
    assert not site.asked


def test_the_engines_of_the_settings_exist() -> None:
    assert {"duckduckgo", "brave", "mojeek"} <= set(engine_names())


# Where it leads


async def test_a_redirect_to_a_private_address_is_refused_at_the_socket(
    provider: str, site: Site, searching: Searching
) -> None:
    async with listening(Site()) as secret:
        secret.answers = [results(provider, ("Secret", "https://x.example/", "slow kites"))]
        site.answers = [answer(b"", 302, Location=f"{secret.url}/admin")]
        found = await outcome(searching(provider))
        assert kind(found) == "permission_denied"
        assert site.asked
        assert not secret.asked
        naive = primp.Client(timeout=5)
        followed = await anyio.to_thread.run_sync(naive.get, f"{site.url}/search")
        assert "Secret" in followed.text
        assert secret.asked == ["/admin"]


async def test_an_engine_at_a_private_address_is_refused(
    site: Site, fakes: Callable[[str, Site], None]
) -> None:
    site.answers = [answer(page(ONE))]
    fakes("fake", site)
    search = make_search(provider="ddgs", engines=["fake"], pace=QUICK)
    refused = await outcome(search)
    assert isinstance(refused, ToolError)
    assert refused.error_type == "permission_denied"
    assert f"127.0.0.1:{site.port}" in refused.message
    assert not site.asked


async def test_a_search_that_is_given_up_leaves_no_thread(
    site: Site, fakes: Callable[[str, Site], None]
) -> None:
    site.answers = [hang]
    fakes("fake", site)
    engine = DdgsEngine("fake", AddressGuard([f"127.0.0.1:{site.port}"]), timeout=600)
    with anyio.move_on_after(0.3):
        await engine.ask(SearchQuery(QUERY))
    for thread in threading.enumerate():
        if thread.name == "toolcrib-search":
            assert thread.daemon
            await anyio.to_thread.run_sync(thread.join, 10)
            assert not thread.is_alive()
    gc.collect()  # an exception that nobody took would be told here


async def test_searches_at_once_do_not_meet(site: Site, searching: Searching) -> None:
    async def echo(stream: SocketStream) -> None:
        query = site.parameters()["q"]
        await stream.send(answer(page((query, f"https://{query}.example/", ""), query=query)))

    site.answers = [echo]
    search = searching("ddgs")
    titles: dict[str, str] = {}

    async def ask(query: str) -> None:
        titles[query] = (await search.search(query)).results[0].title

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(ask, f"query{number}")
    assert titles == {f"query{number}": f"query{number}" for number in range(8)}


# Results


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a <b>bold</b> word", "a bold word"),
        ("a<br/>b<!-- c -->", "ab"),
        ("<script>x</script>", "x"),
        ("&lt;b&gt; &amp;amp; &#39;", "<b> &amp; '"),
        ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
        ("a\r\n\t b\u2028c\u00a0d", "a b c d"),
        ("\x1b[31mred\x07\x00", "[31mred"),
        ("evil\u202egpj.exe\u2066x\u2069", "evilgpj.exex"),
        ("zero\u200bwidth\ufeff\u00ad\u2060", "zerowidth"),
        ("tags\U000e0041\U000e007f, bytes\U000e0100\U000e01ef", "tags, bytes"),
        ("\u0645\u06cc\u200c\u062e\u0648 👩\u200d🔬", "\u0645\u06cc\u200c\u062e\u0648 👩\u200d🔬"),
        ("e\u0301", "é"),
        ("\ud800x\ue000", "x"),
        ("a" * 30, "a" * 18 + " …"),
        ("", ""),
    ],
)
def test_texts_are_plain(text: str, plain: str) -> None:
    assert plain_text(text, 20) == plain


@given(st.text())
def test_plain_texts_hide_nothing(text: str) -> None:
    plain = plain_text(text, 50)
    assert len(plain) <= 50
    assert all(each.isprintable() or each in "\u200c\u200d" for each in plain)


@pytest.mark.parametrize(
    "same",
    [
        [
            "https://a.example/x",
            "http://a.example/x",
            "https://www.a.example/x/",
            "https://A.Example/x",
        ],
        ["https://a.example", "https://a.example/", "https://a.example:443/#top"],
        ["https://a.example/x?a=1&b=", "https://a.example/x?a=1&b=&utm_source=y&gclid=1#z"],
        ["http://a.example:80/x", "https://a.example/x"],
    ],
)
def test_a_page_is_told_once(same: list[str]) -> None:
    found = [SearchResult(f"{number}", "", url, "e") for number, url in enumerate(same)]
    assert [each.url for each in distinct(found, 20)] == same[:1]


def test_different_pages_are_told_each() -> None:
    urls = [
        *("https://a.example/x", "https://a.example/X", "https://a.example/x?a=1"),
        *("https://a.example/x?a=2", "https://a.example:8443/x", "https://b.a.example/x"),
        *("https://a.example/x?a=1&a=2", "https://a.example/x%2fy", "https://a.example/x/y"),
    ]
    found = [SearchResult("", "", url, "e") for url in urls]
    assert [each.url for each in distinct(found, 20)] == urls
    assert [each.title for each in distinct(found, 2)] == urls[:2]


@pytest.mark.parametrize(
    "url",
    [
        *("", "x", "/relative", "//a.example/", "javascript:alert(1)", "data:text/html,x"),
        *("file:///etc/passwd", "ftp://a.example/", "http://", "http:///x"),
        *("https://user@a.example/", "https://a.example/\u202egpj", "https://a.example/a b"),
        *("https://a.example/\nX: y", "https://a.example\\@b.example/", "https://a.example:port/"),
        *("https://[::1", "http://a:99999/", "https://a.example/" + "x" * 2_000),
        *("https://a.example/\x1b[2J", "HTTPS:a.example"),
    ],
)
def test_what_is_no_address_of_the_web_is_no_result(url: str) -> None:
    assert distinct([SearchResult("t", "s", url, "e")], 20) == ()


@pytest.mark.parametrize(
    ("text", "region", "tag", "brave"),
    [
        ("en", "us-en", "en", {"search_lang": "en"}),
        ("EN-gb", "uk-en", "en-GB", {"search_lang": "en-gb", "country": "GB"}),
        ("de_AT", "at-de", "de-AT", {"search_lang": "de", "country": "AT"}),
        ("pt", "pt-pt", "pt", {"search_lang": "pt-pt"}),
        ("ja", "jp-ja", "ja", {"search_lang": "jp"}),
        ("zh-TW", "tw-zh", "zh-TW", {"search_lang": "zh-hant", "country": "TW"}),
        ("zh", "cn-zh", "zh", {"search_lang": "zh-hans"}),
        ("sv-FI", "fi-sv", "sv-FI", {"search_lang": "sv", "country": "FI"}),
        ("en-NG", "ng-en", "en-NG", {"search_lang": "en"}),
    ],
)
def test_a_language_has_a_name_for_each_engine(
    text: str, region: str, tag: str, brave: dict[str, str]
) -> None:
    language = Language.parse(text)
    assert (language.region, language.tag, language.for_brave()) == (region, tag, brave)


@pytest.mark.parametrize(
    "text", ["e", "eng", "en-", "en-USA", "english", "e1", "en us", "en\n", "ä"]
)
def test_what_is_no_language_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="lang"):
        Language.parse(text)


def test_a_language_that_brave_does_not_know_is_refused() -> None:
    with pytest.raises(InvalidArgumentsError, match="'sw'"):
        Language.parse("sw").for_brave()


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        *(("0", 0.0), ("17", 17.0), ("", None), ("x", None), ("-1", None), ("1.5", None)),
        *((formatdate(0, usegmt=True), 0.0), ("\u0663", None), ("9" * 400, None)),
    ],
)
def test_a_wait_is_read_or_not_known(value: str, seconds: float | None) -> None:
    assert retry_after(value) == seconds


@pytest.mark.parametrize("query", ["x" * 401, "a " * 51])
async def test_brave_is_asked_what_it_takes(site: Site, searching: Searching, query: str) -> None:
    site.answers = [results("brave", ONE)]
    assert kind(await outcome(searching("brave"), query)) == "invalid_arguments"
    assert kind(await outcome(searching("brave"), page=11)) == "invalid_arguments"
    assert kind(await outcome(searching("brave"), lang="sw")) == "invalid_arguments"
    assert not site.asked

import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from reportlab.pdfgen.canvas import Canvas

import tools
from tests.conftest import told
from tools.core.context import Grant, RequestContext
from tools.core.discovery import discover
from tools.core.errors import ToolError
from tools.core.machine import Machine
from tools.core.registry import ToolRegistry
from tools.core.result import ToolResult
from tools.core.spec import Effect, ToolScope, ToolSpec
from tools.sandbox.web.web_search import SearchPace, make_search

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PAGE = """<!doctype html><html><head><title>Herons</title></head><body><nav>Menu</nav>
<h1>The heron</h1><p>It stands in <b>water</b> &amp; waits for fish, patiently, all day.</p>
</body></html>"""


@pytest.fixture
async def crib(open_crib: Callable[..., Any], site: Any, workers: None) -> AsyncIterator[Any]:
    """The product, which may ask the site on loopback, and gives results of any size."""
    allowed = ["http_request", "read_web_page"]
    options = {"requests__private": [site.address], "limits__result_tokens": 0}
    async with open_crib(policy__allow=allowed, **options) as crib:
        yield crib


async def test_http_request_answers_with_text(crib: Any, site: Any) -> None:
    url = site.serve("/a?b=c", "grün", "text/plain; charset=utf-8", X_Answer="yes")
    answer = await crib.call("http_request", url=url)
    assert (answer["status"], answer["url"], "redirect_to" in answer) == (200, url, False)
    assert (answer["form"], answer["content"], answer["bytes"]) == ("text", "grün", 5)
    assert answer["headers"]["x-answer"] == "yes"
    assert (answer["content_type"], answer["truncated"]) == ("text/plain; charset=utf-8", False)
    assert await crib.text("http_request", url=url) == (
        f"[{url}: 200, text/plain; charset=utf-8, 5 bytes, text]\ngrün"
    )


async def test_a_body_and_headers_are_sent(crib: Any, site: Any) -> None:
    for method in ["POST", "PUT", "PATCH", "DELETE"]:
        url = site.serve("/", "")
        headers = {"Content-Type": "application/json", "X-Given": "1"}
        await crib.call("http_request", url=url, method=method, headers=headers, body='{"a": "ü"}')
        asked, path, sent, body = site.asked[-1]
        assert (asked, path, body) == (method, "/", '{"a": "ü"}'.encode())
        assert (sent["Content-Type"], sent["X-Given"]) == ("application/json", "1")


async def test_any_status_is_a_result(crib: Any, site: Any) -> None:
    for status in [201, 204, 400, 401, 403, 404, 418, 429, 500, 503]:
        url = site.serve("/", "" if status == 204 else "said", "text/plain", status)
        answer = await crib.call("http_request", url=url)
        assert (answer["status"], answer["content"]) == (status, "" if status == 204 else "said")


async def test_head_shows_the_headers(crib: Any, site: Any) -> None:
    url = site.serve("/", "body", "text/plain", ETag='"1"')
    answer = await crib.call("http_request", url=url, method="HEAD")
    assert (answer["form"], answer["content"], answer["headers"]["etag"]) == ("", "", '"1"')
    assert 'etag: "1"' in await crib.text("http_request", url=url, method="HEAD")


async def test_a_page_is_markdown_unless_it_is_asked_for_otherwise(crib: Any, site: Any) -> None:
    url = site.serve("/", PAGE, "text/html")
    for form in ({}, {"as": "auto"}, {"as": "markdown"}):
        answer = await crib.call("http_request", url=url, **form)
        assert answer["form"] == "markdown"
        assert "# The heron" in answer["content"]
        assert "<p>" not in answer["content"]
    answer = await crib.call("http_request", url=url, **{"as": "text"})
    assert (answer["form"], answer["content"]) == ("text", PAGE)


async def test_json_is_parsed_where_it_is_asked_for(crib: Any, site: Any) -> None:
    value = {"a": [1, 2.5, None, "ü"], "b": {}}
    url = site.serve("/", json.dumps(value), "application/json")
    answer = await crib.call("http_request", url=url, **{"as": "json"})
    assert (answer["form"], answer["parsed"], answer["content"]) == ("json", value, "")
    assert '"ü"' in await crib.text("http_request", url=url, **{"as": "json"})
    answer = await crib.call("http_request", url=url)
    assert (answer["form"], answer["content"]) == ("text", json.dumps(value))


async def test_what_is_no_json_is_the_servers_failure(crib: Any, site: Any) -> None:
    for body in ["", "{", "<html>", "[1,", "[" * 100_000, "[" * 80 + "]" * 80, "1" * 5_000]:
        url = site.serve("/", body or " ", "application/json")
        kind, text = await crib.failure("http_request", url=url, **{"as": "json"})
        assert kind == "upstream_failed"
        assert "as text" in text


async def test_numbers_that_json_has_not_are_null(crib: Any, site: Any) -> None:
    url = site.serve("/", "[NaN, Infinity, 1]", "application/json")
    answer = await crib.call("http_request", url=url, **{"as": "json"})
    assert answer["parsed"] == [None, None, 1]


async def test_an_image_stands_beside_the_answer(crib: Any, site: Any) -> None:
    url = site.serve("/", PNG, "image/png")
    result = await crib.client.call_tool("http_request", {"url": url})
    assert result.structured_content["form"] == "media"
    assert result.structured_content["media"]["mime_type"] == "image/png"
    assert base64.b64decode(result.content[1].data) == PNG


async def test_other_data_are_base64(crib: Any, site: Any) -> None:
    for content_type in ["application/zip", "application/octet-stream", "", "x/y"]:
        data = bytes(range(256)) * 10
        url = site.serve("/", data, content_type)
        answer = await crib.call("http_request", url=url)
        assert answer["form"] == "base64"
        assert base64.b64decode(answer["content"]) == data
        kind, _ = await crib.failure("http_request", url=url, **{"as": "text"})
        assert kind == "invalid_arguments"


async def test_a_long_body_is_given_whole_in_each_form(crib: Any, site: Any) -> None:
    text = json.dumps({"rows": [{"number": number} for number in range(60_000)]})
    url = site.serve("/", text, "application/json")
    for form, content in [("text", text), ("base64", base64.b64encode(text.encode()).decode())]:
        answer = await crib.call("http_request", url=url, **{"as": form})
        assert answer["content"] == content
        assert (answer["bytes"], answer["truncated"], answer["note"]) == (len(text), False, "")
    answer = await crib.call("http_request", url=url, **{"as": "json"})
    assert answer["parsed"] == json.loads(text)


async def test_a_body_over_the_limit_is_cut_and_says_how_large_it_is(crib: Any, site: Any) -> None:
    url = site.serve("/", b"x" * 12_000_000, "text/plain")
    answer = await crib.call("http_request", url=url)
    assert (len(answer["content"]), answer["truncated"]) == (10_000_000, True)
    assert "first 10,000,000 of 12,000,000 bytes were read" in answer["note"]
    _, text = await crib.failure("http_request", url=url, **{"as": "json"})
    assert "is too large: 10,000,000 bytes were read, 2,000,000 are parsed" in text
    assert "Next: Ask for text, in which read_result finds paths and rows" in text


async def test_text_of_no_type_is_text(crib: Any, site: Any) -> None:
    answer = await crib.call("http_request", url=site.serve("/", "grün"))
    assert (answer["form"], answer["content"]) == ("text", "grün")


async def test_the_charset_of_the_header_is_believed(crib: Any, site: Any) -> None:
    url = site.serve("/", "Привет, мир".encode("koi8-r"), "text/plain; charset=koi8-r")
    assert (await crib.call("http_request", url=url))["content"] == "Привет, мир"
    page = f"<html><body><h1>Привет</h1><p>{'мир ' * 50}</p></body></html>".encode("cp1251")
    url = site.serve("/p", page, "text/html; charset=windows-1251")
    assert "# Привет" in (await crib.call("http_request", url=url))["content"]


async def test_a_redirect_within_the_site_is_followed(crib: Any, site: Any) -> None:
    end = site.serve("/end", "there", "text/plain")
    url = site.serve("/", "", status=302, Location="/end")
    answer = await crib.call("http_request", url=url)
    assert (answer["url"], answer["content"]) == (end, "there")


async def test_a_redirect_to_another_site_is_the_answer(crib: Any, site: Any) -> None:
    for status in [301, 302, 303, 307, 308]:
        url = site.serve("/", "", status=status, Location="https://example.com/?data=secret")
        answer = await crib.call("http_request", url=url)
        assert (answer["status"], answer["redirect_to"]) == (
            status,
            "https://example.com/?data=secret",
        )
        assert "ask for https://example.com/" in await crib.text("http_request", url=url)


async def test_a_redirect_to_what_a_rule_denies_is_not_followed(
    open_crib: Callable[..., Any], site: Any, workers: None
) -> None:
    secret = site.serve("/secret", "hidden", "text/plain")
    url = site.serve("/", "", status=302, Location="/secret")
    options = {"requests__private": [site.address], "policy__allow": ["http_request"]}
    async with open_crib(**options) as naive:
        assert (await naive.call("http_request", url=url))["content"] == "hidden"
    async with open_crib(**options, policy__deny=[f"http_request({secret})"]) as crib:
        answer = await crib.call("http_request", url=url)
        assert (answer["content"], answer["redirect_to"]) == ("", secret)
        assert (await crib.failure("http_request", url=secret))[0] == "permission_denied"


async def test_a_private_address_is_refused(crib: Any) -> None:
    for url in [
        *("http://127.0.0.1:1/", "http://localhost/", "http://[::1]/", "http://10.0.0.1/"),
        *("http://169.254.169.254/latest/meta-data/", "http://[::ffff:127.0.0.1]/"),
        *("http://[64:ff9b::7f00:1]/", "https://192.168.1.1:8443/"),
    ]:
        kind, text = await crib.failure("http_request", url=url)
        assert kind == "permission_denied"
        assert "requests.private" in text


async def test_odd_arguments_are_refused(crib: Any) -> None:
    wrong: list[dict[str, Any]] = [
        {"url": "file:///etc/passwd"},
        {"url": "http://0x7f.1/"},
        {"url": "http://a@b.com/"},
        {"url": "http://a.com/\r\nX: y"},
        {"url": ""},
        {"url": "http://a.com:0/"},
        {"url": "http://a.com/", "headers": {"Host": "b.com"}},
        {"url": "http://a.com/", "headers": {"A": "b\r\nC: d"}},
        {"url": "http://a.com/", "method": "CONNECT"},
        {"url": "http://a.com/", "as": "pdf"},
    ]
    for arguments in wrong:
        kind, _ = await crib.failure("http_request", **arguments)
        assert kind == "invalid_arguments"


async def test_nobody_answering_is_the_servers_failure(crib: Any, site: Any) -> None:
    url = site.serve("/", "")
    site.server_close()
    kind, text = await crib.failure("http_request", url=url)
    assert kind == "upstream_failed"
    # The listener may take one more connection while it closes.
    assert "cannot be reached" in text or "broke off" in text


ARTICLE = """<!doctype html><html lang="en"><head><title>Herons at work | The Pond</title>
<meta property="og:title" content="Herons at work">
<meta property="og:site_name" content="The Pond"><meta name="author" content="Ann Rivers">
<meta property="article:published_time" content="2026-03-04T05:06:07Z">
<meta property="og:type" content="article"></head>
<body><nav><ul><li><a href="/">Home</a></li><li><a href="/shop">Shop our merchandise</a></li></ul>
</nav><article><h1>Herons at work</h1>
<p>The grey heron stands in shallow water for hours, and hardly ever moves while it waits there.</p>
<p>When a fish comes near, it strikes within a tenth of a second; see <a href="/fish">the fish</a>
that it prefers, among which are roach, perch and, in some ponds, unlucky goldfish.</p>
<h2>Nests</h2><p>It nests in colonies high up in trees, which it uses again year after year, and
which grow larger every spring, until a storm brings them down one night.</p></article>
<footer>Copyright The Pond. Cookie settings. Privacy.</footer>
<script>alert("never shown")</script></body></html>"""


def pdf(*lines: str) -> bytes:
    file = BytesIO()
    canvas = Canvas(file)
    canvas.setTitle("Herons in print")
    for number, line in enumerate(lines):
        canvas.drawString(72, 700 - 20 * number, line)
    canvas.save()
    return file.getvalue()


async def test_read_web_page_gives_the_article_without_menus(crib: Any, site: Any) -> None:
    url = site.serve("/herons", ARTICLE, "text/html; charset=utf-8")
    page = await crib.call("read_web_page", url=url)
    assert (page["title"], page["site"]) == ("Herons at work", "The Pond")
    assert (page["author"], page["date"]) == ("Ann Rivers", "2026-03-04")
    assert "The grey heron stands" in page["text"]
    assert "## Nests" in page["text"]
    assert f"[the fish](http://{site.address}/fish)" in page["text"]
    for noise in ("merchandise", "Cookie settings", "never shown", "<p>"):
        assert noise not in page["text"]
    assert (page["offset"], "next_offset" in page, page["truncated"]) == (0, False, False)
    assert page["total"] == len(page["text"])
    assert (await crib.text("read_web_page", url=url)).startswith(
        f"[Herons at work | The Pond | Ann Rivers | 2026-03-04 | {url}]\n"
    )


async def test_a_page_without_an_article_gives_all_its_text(crib: Any, site: Any) -> None:
    cells = "".join(f"<tr><td>pond {n}</td><td>{n} herons</td></tr>" for n in range(40))
    url = site.serve("/", f"<html><title>Count</title><table>{cells}</table></html>", "text/html")
    page = await crib.call("read_web_page", url=url)
    assert page["title"] == "Count"
    assert "pond 39" in page["text"]


async def test_a_page_is_read_part_by_part(crib: Any, site: Any) -> None:
    text = "".join(f"Line {number} about herons.\n" for number in range(200))
    url = site.serve("/", text, "text/plain")
    parts, offset = [], 0
    while offset is not None:
        page = await crib.call("read_web_page", url=url, offset=offset, max_characters=1_000)
        assert len(page["text"]) <= 1_000
        parts.append(page["text"])
        offset = page.get("next_offset")
    assert "".join(parts) == text
    assert len(parts) > 3
    kind, told = await crib.failure("read_web_page", url=url, offset=len(text) + 1)
    assert kind == "invalid_arguments"
    assert str(len(text)) in told


async def test_a_pdf_is_read(crib: Any, site: Any) -> None:
    for path, content_type in [
        ("/a", "application/pdf"),
        ("/a.pdf", "application/octet-stream"),
        ("/a.pdf", ""),
    ]:
        url = site.serve(path, pdf("The heron waits.", "The fish does not."), content_type)
        page = await crib.call("read_web_page", url=url)
        assert page["title"] == "Herons in print"
        assert "The heron waits." in page["text"]


async def test_plain_text_is_given_as_it_is(crib: Any, site: Any) -> None:
    for body, content_type in [
        ("# Herons\n\nThey wait.", "text/markdown"),
        ("They wait.", "text/plain"),
        ('{"they": "wait"}', "application/json"),
        ("<they>wait</they>", "application/xml"),
        ("They;wait", "text/csv; charset=utf-8"),
    ]:
        page = await crib.call("read_web_page", url=site.serve("/", body, content_type))
        assert page["text"] == body


async def test_a_page_in_another_encoding_is_read(crib: Any, site: Any) -> None:
    page = ARTICLE.replace("grey heron", "серая цапля").encode("cp1251")
    url = site.serve("/", page, "text/html; charset=windows-1251")
    assert "серая цапля" in (await crib.call("read_web_page", url=url))["text"]


async def test_what_is_no_text_is_refused_with_what_to_do(crib: Any, site: Any) -> None:
    for content_type in ["image/png", "video/mp4", "application/zip", "font/woff2", "audio/mpeg"]:
        kind, text = await crib.failure(
            "read_web_page", url=site.serve("/", b"\x89\0\1\2", content_type)
        )
        assert kind == "invalid_arguments"
        assert "http_request" in text


async def test_a_page_of_nothing_or_nonsense_is_an_answer_or_a_failure(
    crib: Any, site: Any
) -> None:
    for page in [
        *("", " ", "<html></html>", "<html>" + "<div>" * 20_000),
        *("<!doctype html>" + "<!--" * 10_000, "<html><script>1</script></html>"),
        *("<html>\0\0\0</html>", "<html" + " a=b" * 10_000, "<html><title>" + "x" * 50_000),
        "<html>" + "&#x0;&#xD800;&#x110000;" * 100,
    ]:
        result = await crib.client.call_tool(
            "read_web_page", {"url": site.serve("/", page, "text/html")}
        )
        if result.is_error:
            assert told(result).startswith(("upstream_failed: ", "invalid_arguments: "))


async def test_an_error_page_is_a_failure(crib: Any, site: Any) -> None:
    for status, kind in [
        (404, "not_found"),
        (410, "not_found"),
        (429, "rate_limited"),
        (401, "upstream_failed"),
        (403, "upstream_failed"),
        (500, "upstream_failed"),
        (503, "upstream_failed"),
    ]:
        url = site.serve("/", ARTICLE, "text/html", status)
        found, text = await crib.failure("read_web_page", url=url)
        assert found == kind
        assert str(status) in text


async def test_a_page_elsewhere_is_told(crib: Any, site: Any) -> None:
    url = site.serve("/", "", status=301, Location="https://example.com/herons")
    kind, text = await crib.failure("read_web_page", url=url)
    assert kind == "upstream_failed"
    assert "https://example.com/herons" in text


async def test_a_page_at_a_private_address_is_refused(crib: Any) -> None:
    for url in ("http://127.0.0.1:1/", "http://localhost/", "http://169.254.169.254/"):
        kind, _ = await crib.failure("read_web_page", url=url)
        assert kind == "permission_denied"


HIT = {"title": "<b>Kites</b>", "url": "https://kites.example/", "content": "Slow\u202e kites"}
QUICK = SearchPace(first_wait=0.0, seconds=0.5, engine_seconds=0.5)


class Instance:
    """A SearXNG on loopback."""

    def __init__(self, *found: dict[str, Any]) -> None:
        self.status = 200
        self.found = list(found)
        self.is_silent = False
        self.asked: list[dict[str, list[str]]] = []
        self.port = 0

    async def speak(self, stream: SocketStream) -> None:
        async with stream:
            head = await stream.receive()
            self.asked.append(parse_qs(urlsplit(head.split(b" ")[1].decode()).query))
            if self.is_silent:
                await stream.receive()
            body = json.dumps({"results": self.found}).encode()
            lines = [f"HTTP/1.1 {self.status} Said", f"Content-Length: {len(body)}", "", ""]
            await stream.send("\r\n".join(lines).encode() + body)


@asynccontextmanager
async def _listening(instance: Instance) -> AsyncIterator[Instance]:
    async def speak(stream: SocketStream) -> None:
        try:
            await instance.speak(stream)
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return

    (listener,) = (await anyio.create_tcp_listener(local_host="127.0.0.1")).listeners
    async with listener, anyio.create_task_group() as group:
        instance.port = listener.extra(SocketAttribute.local_port)  # noqa: S610  # no Django
        group.start_soon(listener.serve, speak)
        yield instance
        group.cancel_scope.cancel()


@pytest.fixture
async def instance() -> AsyncIterator[Instance]:
    async with _listening(Instance(HIT)) as instance:
        yield instance


def _search_spec() -> ToolSpec:
    registry = ToolRegistry()
    discover(registry, tools)
    return registry.find("web_search")


def _unused() -> Any:
    raise AssertionError


async def _search(instance: Instance, **arguments: Any) -> ToolResult:
    """What web_search answers, with the instance as its engine."""
    machine = Machine(
        processes=_unused,
        code_workers=_unused,
        web=_unused,
        search=lambda: make_search(
            provider="searxng", url=f"http://127.0.0.1:{instance.port}", pace=QUICK
        ),
    )
    spec = _search_spec()
    async with machine.running():
        try:
            checked = spec.validate(arguments)
            return await spec.invoke(checked, RequestContext().granted(Grant(machine=machine)))
        except ToolError as error:
            return ToolResult.failure(error)


async def test_web_search_answers_with_plain_results(instance: Instance) -> None:
    result = await _search(instance, query=" slow\n kites ")
    assert result.structured == {
        "query": "slow kites",
        "results": [
            {
                "title": "Kites",
                "snippet": "Slow kites",
                "url": "https://kites.example/",
                "source": "searxng",
            }
        ],
        "engine": "searxng",
    }
    assert result.text == "1. Kites\nhttps://kites.example/\nSlow kites"
    assert instance.asked[0]["q"] == ["slow kites"]


async def test_nothing_found_is_said_in_a_sentence(instance: Instance) -> None:
    instance.found = []
    result = await _search(instance, query="slow kites")
    assert not result.is_error
    assert result.structured["results"] == []
    assert "found nothing for 'slow kites'" in result.text


async def test_as_many_are_told_as_were_asked_for(instance: Instance) -> None:
    instance.found = [HIT | {"url": f"https://kites.example/{number}"} for number in range(30)]
    assert len((await _search(instance, query="kites")).structured["results"]) == 5
    assert len((await _search(instance, query="kites", max_results=20)).structured["results"]) == 20
    (first,) = (await _search(instance, query="kites", max_results=1)).structured["results"]
    assert first["url"].endswith("/0")


async def test_what_narrows_a_search_is_passed_on(instance: Instance) -> None:
    await _search(instance, query="kites", lang="de-at", timelimit="y", page=2)
    asked = instance.asked[0]
    assert (asked["language"], asked["time_range"], asked["pageno"]) == (["de-AT"], ["year"], ["2"])


@pytest.mark.parametrize(
    ("status", "expected"),
    [(429, "rate_limited"), (403, "unavailable"), (500, "upstream_failed"), (200, "timeout")],
)
async def test_each_failure_of_a_search_has_a_type_and_says_what_to_do(
    instance: Instance, status: int, expected: str
) -> None:
    instance.status = status
    instance.is_silent = expected == "timeout"
    result = await _search(instance, query="kites")
    assert result.is_error
    assert result.structured["error_type"] == expected
    assert result.structured["next_actions"]


@pytest.mark.parametrize(
    "wrong",
    [
        *({"query": ""}, {"query": " \n"}, {"query": "x" * 501}, {"max_results": 0}),
        *({"max_results": 21}, {"lang": "english"}, {"lang": "d"}, {"lang": "de-AUT"}),
        *({"timelimit": "h"}, {"timelimit": "day"}, {"page": 0}, {"page": 51}, {"engine": "x"}),
    ],
    ids=str,
)
async def test_what_cannot_be_searched_for_is_refused(
    instance: Instance, wrong: dict[str, Any]
) -> None:
    result = await _search(instance, **({"query": "kites"} | wrong))
    assert result.structured["error_type"] == "invalid_arguments"
    assert next(iter(wrong)) in result.text
    assert not instance.asked


def test_a_search_says_that_it_reaches_outside() -> None:
    spec = _search_spec()
    assert spec.scope is ToolScope.SYSTEM
    assert spec.effects == {Effect.READ, Effect.EXTERNAL}
    assert spec.open_world
    assert "leaves this machine" in spec.description

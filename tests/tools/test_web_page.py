from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from io import BytesIO
from typing import Any

import pytest
from reportlab.pdfgen.canvas import Canvas

pytestmark = pytest.mark.anyio

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


@pytest.fixture
async def crib(open_crib: Callable[..., Any], site: Any, workers: None) -> AsyncIterator[Any]:
    """The product, which may ask the site on loopback."""
    async with open_crib(requests__private=[site.address], policy__allow=["read_web_page"]) as crib:
        yield crib


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
    assert (page["offset"], page["next_offset"], page["truncated"]) == (0, None, False)
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
        offset = page["next_offset"]
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
        "",
        " ",
        "<html></html>",
        "<html>" + "<div>" * 20_000,
        "<!doctype html>" + "<!--" * 10_000,
        "<html><script>1</script></html>",
        "<html>\0\0\0</html>",
        "<html" + " a=b" * 10_000,
        "<html><title>" + "x" * 50_000,
        "<html>" + "&#x0;&#xD800;&#x110000;" * 100,
    ]:
        result = await crib.client.call_tool(
            "read_web_page", {"url": site.serve("/", page, "text/html")}
        )
        if result.is_error:
            assert result.structured_content["error_type"] in {
                "upstream_failed",
                "invalid_arguments",
            }


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


async def test_a_redirect_to_another_site_is_told(crib: Any, site: Any) -> None:
    url = site.serve("/", "", status=301, Location="https://example.com/herons")
    kind, text = await crib.failure("read_web_page", url=url)
    assert kind == "upstream_failed"
    assert "https://example.com/herons" in text


async def test_a_private_address_is_refused(crib: Any) -> None:
    for url in ("http://127.0.0.1:1/", "http://localhost/", "http://169.254.169.254/"):
        kind, _ = await crib.failure("read_web_page", url=url)
        assert kind == "permission_denied"

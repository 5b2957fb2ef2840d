from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

pytestmark = pytest.mark.anyio

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PAGE = """<!doctype html><html><head><title>Herons</title></head><body><nav>Menu</nav>
<h1>The heron</h1><p>It stands in <b>water</b> &amp; waits for fish, patiently, all day.</p>
</body></html>"""


@pytest.fixture
async def crib(open_crib: Callable[..., Any], site: Any, workers: None) -> AsyncIterator[Any]:
    """The product, which may ask the site on loopback."""
    async with open_crib(requests__private=[site.address], policy__allow=["http_request"]) as crib:
        yield crib


async def test_http_request_answers_with_text(crib: Any, site: Any) -> None:
    url = site.serve("/a?b=c", "grün", "text/plain; charset=utf-8", X_Answer="yes")
    answer = await crib.call("http_request", url=url)
    assert (answer["status"], answer["url"], answer["redirect_to"]) == (200, url, None)
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


async def test_base64_is_given_of_anything_and_cut(crib: Any, site: Any) -> None:
    url = site.serve("/", b"x" * 400_000, "text/plain")
    answer = await crib.call("http_request", url=url, **{"as": "base64"})
    assert base64.b64decode(answer["content"]) == b"x" * 150_000
    assert answer["truncated"]
    assert "first 150000 bytes" in answer["note"]


async def test_a_long_text_is_cut_and_says_so(crib: Any, site: Any) -> None:
    url = site.serve("/", "x" * 300_000, "text/plain")
    answer = await crib.call("http_request", url=url)
    assert (len(answer["content"]), answer["bytes"], answer["truncated"]) == (
        200_000,
        300_000,
        True,
    )
    assert "first 200000 of 300000 characters" in answer["note"]


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
        "http://127.0.0.1:1/",
        "http://localhost/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "https://192.168.1.1:8443/",
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

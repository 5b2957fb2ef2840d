"""Answers that are slow, endless, packed or nonsense."""

import gzip
import socket
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.core.errors import DeadlineError, ToolError, UpstreamError
from tools.sandbox.web.response import WebResponse

zipped = partial(gzip.compress, mtime=0)  # the same in each process that collects tests

OK = b"HTTP/1.1 200 OK\r\n"
PACKED = b"Content-Encoding: gzip\r\n\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
MAX = 100_000

_packing = zlib.compressobj(9, zlib.DEFLATED, -15)
ZEROS = _packing.compress(bytes(4_000_000)) + _packing.flush(zlib.Z_FULL_FLUSH)
"""Blocks of four million zeros, which may follow each other."""

GZIP_START = zipped(b"")[:10]


async def ask(web: Any, answer: Any, method: str = "GET", **options: Any) -> WebResponse:
    """What the client makes of an answer."""
    site = web.site()
    site.routes["/"] = answer(site) if callable(answer) else answer
    client = web.client("a.test", max_bytes=MAX)
    response: WebResponse = await client.request(method, site.url("/", "a.test"), **options)
    return response


# Slow answers: each sends something again and again, so that no single read takes long.

SLOW: dict[str, Callable[[Any], Iterator[bytes]]] = {
    "nothing": lambda site: site.drip(b"", b""),
    "status line": lambda site: site.drip(b"HTTP/1.1 200 O", b"K"),
    "header name": lambda site: site.drip(OK, b"x"),
    "header value": lambda site: site.drip(OK + b"X-A: ", b"x"),
    "headers": lambda site: site.drip(OK, b"X-A: b\r\n"),
    "body of known length": lambda site: site.drip(OK + b"Content-Length: 100000\r\n\r\n", b"x"),
    "body to the end": lambda site: site.drip(OK + b"\r\n", b"x"),
    "chunks": lambda site: site.drip(CHUNKED, b"1\r\nx\r\n"),
    "chunk size": lambda site: site.drip(CHUNKED, b"0"),
    "chunk": lambda site: site.drip(CHUNKED + b"ffff\r\n", b"x"),
    "trailers": lambda site: site.drip(CHUNKED + b"0\r\n", b"X-A: b\r\n"),
    "continue": lambda site: site.drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.2),
    "early hints": lambda site: site.drip(b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", 0.2),
    "packed body": lambda site: site.drip(
        OK + b"Content-Encoding: gzip\r\n\r\n" + zipped(b"")[:10], b"\0\0\0\xff\xff"
    ),
}


@pytest.mark.parametrize("part", SLOW)
async def test_a_slow_answer_meets_one_deadline(web: Any, part: str) -> None:
    with pytest.raises(DeadlineError, match=r"within 0\.15 seconds"):
        await ask(web, SLOW[part], timeout=0.15)


async def test_a_naive_client_reads_a_dripping_answer_for_ever(site: Any) -> None:
    site.routes["/"] = SLOW["body to the end"](site)
    with httpx2.stream("GET", site.url(), timeout=0.15) as response:
        pieces = response.iter_raw()
        assert [next(pieces) for _ in range(20)]  # at twenty milliseconds each


async def test_redirects_share_the_deadline(web: Any, site: Any) -> None:

    def late(asked: Any) -> Iterator[bytes]:
        site.closing.wait(0.06)
        yield web.redirect(f"/{int(asked.target[1:] or 0) + 1}")

    site.routes |= {"/": late} | {f"/{n}": late for n in range(20)}
    with pytest.raises(DeadlineError):
        await web.get(site, timeout=0.2, max_redirects=20)
    assert len(site.asked) < 10


async def test_a_server_that_takes_no_body_meets_the_deadline(web: Any, site: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # which nobody ever accepts from
        site.port = deaf.getsockname()[1]
        with pytest.raises(DeadlineError):
            await web.client("a.test").request(
                "POST", site.url("/", "a.test"), body=b"x" * 20_000_000, timeout=0.2
            )


# Endless answers


ENDLESS_HEADS: dict[str, Callable[[Any], Iterator[bytes]]] = {
    "status line": lambda site: site.endless(b"HTTP/1.1 200 ", b"x" * 1000),
    "a header name": lambda site: site.endless(OK, b"x" * 1000),
    "a header value": lambda site: site.endless(OK + b"X-A: ", b"x" * 1000),
    "headers": lambda site: site.endless(OK, b"X-A: b\r\n" * 100),
    "empty headers": lambda site: site.endless(OK, b"a:\n" * 100),
    "continuation lines": lambda site: site.endless(OK + b"X-A: b\r\n", b" c\r\n" * 100),
    "continue": lambda site: site.endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 10),
    "processing": lambda site: site.endless(b"", b"HTTP/1.1 102 Processing\r\n\r\n" * 10),
    "early hints": lambda site: site.endless(
        b"", b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n"
    ),
    "unknown interim": lambda site: site.endless(b"", b"HTTP/1.1 199 X\r\n\r\n" * 10),
    "line ends": lambda site: site.endless(b"", b"\r\n" * 100),
    "trailers": lambda site: site.endless(CHUNKED + b"0\r\n", b"X-A: b\r\n" * 100),
    "chunk extension": lambda site: site.endless(CHUNKED + b"1;", b"x" * 1000),
    "chunk size": lambda site: site.endless(CHUNKED, b"0" * 1000),
}


@pytest.mark.parametrize("part", ENDLESS_HEADS)
async def test_endless_framing_is_the_servers_failure(web: Any, part: str) -> None:
    with pytest.raises(UpstreamError, match="does not answer with HTTP"):
        await ask(web, ENDLESS_HEADS[part])


async def test_a_naive_client_takes_interim_answers_without_end(web: Any, site: Any) -> None:
    flood = b"HTTP/1.1 100 Continue\r\n\r\n" * 2_000
    site.routes["/"] = flood + web.ok(b"after")
    assert httpx2.get(site.url()).content == b"after"


@pytest.mark.parametrize(("lines", "is_taken"), [(200, True), (253, True), (300, False)])
async def test_as_many_header_lines_are_taken_as_are_allowed(
    web: Any, lines: int, is_taken: bool
) -> None:
    answer = web.ok(b"body", *(f"X-{n}: b" for n in range(lines)))
    if is_taken:
        assert len((await ask(web, answer)).headers) == lines + 1
    else:
        with pytest.raises(UpstreamError, match="256 lines"):
            await ask(web, answer)


@pytest.mark.parametrize(("size", "is_taken"), [(8_000, True), (15_000, True), (17_000, False)])
async def test_headers_may_have_so_many_bytes(web: Any, size: int, is_taken: bool) -> None:
    answer = web.ok(b"body", "X-A: " + "b" * size)
    if is_taken:
        assert (await ask(web, answer)).header("x-a") == "b" * size
    else:
        with pytest.raises(UpstreamError, match="16384 bytes"):
            await ask(web, answer)


@pytest.mark.parametrize("interim", [0, 1, 3, 15])
async def test_a_few_interim_answers_are_none(web: Any, interim: int) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * interim
    response = await ask(web, hints + web.ok(b"body"))
    assert (response.status, response.content) == (200, b"body")


ENDLESS_BODIES: dict[str, Callable[[Any], Iterator[bytes]]] = {
    "to the end": lambda site: site.endless(OK + b"\r\n", b"x" * 5_000),
    "of known length": lambda site: site.endless(
        OK + b"Content-Length: 99999999999999\r\n\r\n", b"x" * 5_000
    ),
    "large chunks": lambda site: site.endless(CHUNKED, b"1388\r\n" + b"x" * 5_000 + b"\r\n"),
    "small chunks": lambda site: site.endless(CHUNKED, b"5\r\nhello\r\n" * 1_000),
    "one chunk": lambda site: site.endless(CHUNKED + b"fffffffffff\r\n", b"x" * 5_000),
    "gzip": lambda site: site.endless(OK + b"Content-Encoding: gzip\r\n\r\n" + GZIP_START, ZEROS),
    "stored gzip": lambda site: site.endless(
        OK + b"Content-Encoding: gzip\r\n\r\n" + GZIP_START, b"\0\xe8\x03\x17\xfc" + b"x" * 1000
    ),
    "gzip that gives nothing": lambda site: site.endless(
        OK + b"Content-Encoding: gzip\r\n\r\n" + GZIP_START, b"\0\0\0\xff\xff" * 1_000
    ),
    "empty gzip members": lambda site: site.endless(
        OK + b"Content-Encoding: gzip\r\n\r\n", zipped(b"") * 100
    ),
    "bytes after the end of gzip": lambda site: site.endless(
        OK + b"Content-Encoding: gzip\r\n\r\n" + zipped(b""), b"x" * 5_000
    ),
}


@pytest.mark.parametrize("form", ENDLESS_BODIES)
async def test_an_endless_body_is_cut(web: Any, form: str) -> None:
    response = await ask(web, ENDLESS_BODIES[form])
    assert response.truncated
    assert len(response.content) <= MAX


def _packed(form: str) -> tuple[str, bytes]:
    """A billion zeros."""
    many = ZEROS * 250
    match form:
        case "gzip" | "x-gzip" | "GZIP":
            return form, GZIP_START + many
        case "deflate":
            return form, b"\x78\xda" + many
        case _:
            return "deflate", many  # without zlib's wrapper


@pytest.mark.parametrize("form", ["gzip", "x-gzip", "GZIP", "deflate", "raw deflate"])
async def test_a_bomb_is_unpacked_as_far_as_is_allowed(web: Any, form: str) -> None:
    encoding, body = _packed(form)
    assert len(body) < 1_100_000
    site = web.site()
    site.routes["/"] = web.ok(body, f"Content-Encoding: {encoding}")
    client = web.client("a.test", max_bytes=2_000_000)
    tracemalloc.start()
    try:
        response = await client.request("GET", site.url("/", "a.test"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (response.content, response.truncated) == (bytes(2_000_000), True)
    assert peak < 12_000_000


async def test_a_naive_client_unpacks_a_bomb_whole(web: Any, site: Any) -> None:
    site.routes["/"] = web.ok(b"\x78\xda" + ZEROS * 10, "Content-Encoding: deflate")
    assert len(httpx2.get(site.url()).content) == 40_000_000


@pytest.mark.parametrize(
    "encoding",
    [
        *("br", "zstd", "compress", "gzip, gzip", "gzip,deflate", "aes128gcm", "x"),
        *("identity, gzip", "*", "dcb", "exi", "gzip;q=1"),
    ],
)
async def test_a_coding_that_was_not_asked_for_is_refused(web: Any, encoding: str) -> None:
    body = zipped(zipped(b"a"))
    with pytest.raises(UpstreamError, match="not asked for"):
        await ask(web, web.ok(body, f"Content-Encoding: {encoding}"))


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b"garbage", "gzip"),
        (zipped(b"a" * 1000)[:-30] + b"\xff" * 30, "gzip"),
        (zipped(b"a")[:-8] + bytes(8), "gzip"),
        (b"\x78\xdagarbage", "deflate"),
        (b"garbage", "deflate"),
        (b"<html>", "gzip"),
    ],
)
async def test_a_damaged_packed_body_is_the_servers_failure(
    web: Any, body: bytes, encoding: str
) -> None:
    with pytest.raises(UpstreamError, match="unpacked"):
        await ask(web, web.ok(body, f"Content-Encoding: {encoding}"))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b"Content-Encoding: gzip\r\n\r\n" + zipped(b"hello"), b"hello"),
        (b"Content-Encoding: GZip\r\n\r\n" + zipped(b"hello"), b"hello"),
        (b"Content-Encoding: deflate\r\n\r\n" + zlib.compress(b"hello"), b"hello"),
        (b"Content-Encoding: identity\r\n\r\nhello", b"hello"),
        (b"Content-Encoding:\r\n\r\nhello", b"hello"),
        (PACKED + zipped(b"he") + zipped(b"llo"), b"hello"),
        (b"Content-Encoding: gzip\r\n\r\n" + zipped(b"hello") + b"padding", b"hello"),
        (b"Content-Encoding: gzip\r\nContent-Length: 0\r\n\r\n", b""),
        (CHUNKED[17:] + b"3\r\nhel\r\n2;ext=1\r\nlo\r\n0\r\nX-A: b\r\n\r\n", b"hello"),
        (b"Content-Length: 5\r\n\r\nhello and more", b"hello"),
        (b"Content-Length: 5, 5\r\n\r\nhello", b"hello"),
        (b"X-A: \xff\xfe\r\n\r\nhello", b"hello"),
        (b"x-a:b\r\n\r\nhello", b"hello"),
        (b"X-A: b\r\n c\r\n\r\nhello", b"hello"),
        (b"X-A: b\n\nhello", b"hello"),
    ],
)  # fmt: skip
async def test_a_well_formed_answer_is_read(web: Any, answer: bytes, expected: bytes) -> None:
    response = await ask(web, OK + answer)
    assert (response.content, response.truncated) == (expected, False)


async def test_a_packed_body_that_ends_early_is_cut(web: Any) -> None:
    packed = zipped(bytes(range(256)) * 10)
    response = await ask(web, OK + b"Content-Encoding: gzip\r\n\r\n" + packed[:-20])
    assert response.truncated


NONSENSE = [
    *(b"", b"\r\n", b"\0", b"hello", b"<html></html>", b"SSH-2.0-OpenSSH_9.9\r\n", b"220 ftp\r\n"),
    *(b"HTTP/2 200 OK\r\n\r\n", b"HTTP/1.1\r\n\r\n", b"HTTP/1.1 OK\r\n\r\n"),
    *(b"HTTP/1.1 20 OK\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n", b"HTTP/1.1 -20 OK\r\n\r\n"),
    *(b"HTTP/1.1 abc OK\r\n\r\n", b"HTTP/1.1 000 OK\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    *(b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n", b" HTTP/1.1 200 OK\r\n\r\n"),
    *(b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", OK + b": a\r\n\r\n", OK + b"a b: c\r\n\r\n"),
    *(OK + b"a : b\r\n\r\n", OK + b"a\0: b\r\n\r\n", OK + b"a: b\0c\r\n\r\n"),
    *(OK + b" a: b\r\n\r\n", OK + b"a: b\rX: c\r\n\r\n", OK + b"Content-Length: -1\r\n\r\n"),
    *(OK + b"Content-Length: +1\r\n\r\na", OK + b"Content-Length: 0x1\r\n\r\na"),
    *(OK + b"Content-Length: 1 1\r\n\r\na", OK + b"Content-Length: 1, 2\r\n\r\na"),
    OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\na",
    OK + b"Content-Length: 10\r\n\r\nshort",
    OK + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n",
    OK + b"Transfer-Encoding: gzip\r\n\r\n",
    OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    *(OK + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", CHUNKED, CHUNKED + b"x\r\n"),
    *(CHUNKED + b"-1\r\n", CHUNKED + b"0x1\r\na\r\n0\r\n\r\n", CHUNKED + b" 1\r\na\r\n0\r\n\r\n"),
    *(CHUNKED + b"1\r\nab\r\n0\r\n\r\n", CHUNKED + b"1\r\na", CHUNKED + b"5\r\nhello\r\n"),
    *(CHUNKED + b"f" * 30 + b"\r\n", CHUNKED + b"0\r\nno colon\r\n\r\n"),
    *(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\n\r\nnonsense\r\n\r\n"),
]


@pytest.mark.parametrize("answer", NONSENSE)
async def test_nonsense_is_the_servers_failure(web: Any, answer: bytes) -> None:
    with pytest.raises(UpstreamError) as caught:
        await ask(web, answer)
    assert caught.value.next_actions
    assert len(caught.value.message) < 400


async def test_both_framings_are_read_as_chunks(web: Any) -> None:
    """As RFC 9112, 6.3 wants it; the connection is not used again anyway."""
    both = OK + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    assert (await ask(web, both)).content == b"hello"


async def test_a_switch_of_protocols_is_no_answer(web: Any) -> None:
    with pytest.raises(UpstreamError):
        await ask(web, b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nsecret")


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("HEAD", OK + b"Content-Length: 5000000000\r\nContent-Encoding: br\r\n\r\n"),
        ("HEAD", OK + b"Content-Length: 5\r\n\r\nhello"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\nhello"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello"),
        ("GET", OK + b"Content-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\n\r\nsmuggled"),
    ],
)
async def test_what_has_no_body_has_none(web: Any, method: str, answer: bytes) -> None:
    response = await ask(web, answer, method)
    assert (response.content, response.truncated) == (b"", False)


@given(
    st.lists(st.binary(max_size=200), max_size=5), st.sampled_from([b"", OK, OK + b"\r\n", CHUNKED])
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_any_bytes_are_an_answer_or_a_failure(
    web: Any, parts: list[bytes], start: bytes
) -> None:
    site = web.sites[0] if web.sites else web.site()
    site.routes["/"] = [start, *parts]
    client = web.client("a.test", max_bytes=MAX)
    try:
        response = await client.request("GET", site.url("/", "a.test"), timeout=10)
    except ToolError as error:
        assert isinstance(error, UpstreamError)  # noqa: PT017  # whichever of the two it is
    else:
        assert response.status >= 200

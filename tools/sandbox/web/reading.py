"""Converts responses to a page, text, Markdown, JSON, Base64, an image or a sound."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any, Literal
from urllib.parse import urlsplit

import anyio.to_thread

from storage.errors import UnreadableDocumentError
from storage.reading.formats import FORMATS, MARKDOWN
from tools.core.content import Media
from tools.core.errors import InvalidArgumentsError, UpstreamError
from tools.sandbox.web.response import UNTYPED, WebResponse

Form = Literal["auto", "text", "markdown", "json", "base64"]
"""The forms in which a body can be shown."""

MAX_JSON_BYTES = 2_000_000  # more would delay other calls
MAX_JSON_LEVELS = 64

PARSE_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Body:
    """A body in one form.

    The form is empty if there is no body.
    """

    form: Literal["text", "markdown", "json", "base64", "media", ""]
    content: str = ""
    parsed: Any = None  # the parsed value of JSON
    media: Media | None = None
    note: str = ""


async def read_body(response: WebResponse, form: Form) -> Body:
    """Converts a body to the requested form; for "auto", by its declared type."""
    if not response.content:
        return Body("")
    if form == "auto":
        return await _as_its_type_says(response)
    if form == "markdown":
        return await _markdown(response)
    read = {"base64": _base64, "json": _json, "text": _text}[form]
    return await anyio.to_thread.run_sync(read, response)


async def _as_its_type_says(response: WebResponse) -> Body:
    if response.is_html:
        try:
            return await _markdown(response)
        except UpstreamError:  # a page without text, or one that crashes its parsers
            return await anyio.to_thread.run_sync(_text, response)
    if response.is_text:
        return await anyio.to_thread.run_sync(_text, response)
    media = _media(response)
    if media is not None:
        return Body("media", media=media)
    if response.media_type in UNTYPED and _is_utf8(response.content):
        return await anyio.to_thread.run_sync(_text, response)
    return _base64(response)


def _text(response: WebResponse) -> Body:
    found = response.text()
    if found is None:
        raise InvalidArgumentsError(
            f"{response.url} answered with binary data, not text.",
            next_actions=["Ask for it as base64, or use read_web_page for documents."],
        )
    return Body("text", found, note=_missing(response))


async def _markdown(response: WebResponse) -> Body:
    if response.is_text and not response.is_html:
        return await anyio.to_thread.run_sync(_text, response)
    from storage.reading.parse import parse_isolated

    data, name = response.content, "document"
    if response.is_html:
        name = "page.html"
        text = await anyio.to_thread.run_sync(response.text)
        data = b"\xef\xbb\xbf" + (text or "").encode("utf-8", "replace")
    try:
        parsed = await parse_isolated(data, name=name, timeout=PARSE_SECONDS)
    except UnreadableDocumentError as error:
        raise UpstreamError(
            f"What {response.url} answered cannot be read as Markdown: {error.message}",
            next_actions=["Ask for it as text or base64."],
        ) from error
    return Body("markdown", parsed.text, note=_missing(response))


def _json(response: WebResponse) -> Body:
    if response.truncated or len(response.content) > MAX_JSON_BYTES:
        size = f"{len(response.content):,} bytes were read, {MAX_JSON_BYTES:,} are parsed"
        raise InvalidArgumentsError(
            f"The JSON of {response.url} is too large: {size}. {_missing(response)}".rstrip(),
            next_actions=["Ask for text, in which read_result finds paths and rows, or for less."],
        )
    try:
        value = json.loads(response.text() or "")
        _check_levels(value)
    except (ValueError, RecursionError) as error:
        raise UpstreamError(
            f"{response.url} did not answer with JSON: {str(error)[:200]}.",
            next_actions=["Ask for it as text."],
        ) from error
    return Body("json", parsed=value)


def _check_levels(value: Any) -> None:  # noqa: ANN401  # any JSON value
    level = [value]
    for _ in range(MAX_JSON_LEVELS):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return
    raise ValueError(f"it has more than {MAX_JSON_LEVELS} levels")


def _base64(response: WebResponse) -> Body:
    content = b64encode(response.content).decode("ascii")
    return Body("base64", content, note=_missing(response))


def _media(response: WebResponse) -> Media | None:
    if response.truncated:
        return None
    try:
        return Media.of(response.content)
    except ValueError:
        return None


def _missing(response: WebResponse) -> str:
    if not response.truncated:
        return ""
    size = "" if response.header("content-encoding") else response.header("content-length")
    of = f" of {int(size):,}" if re.fullmatch("[0-9]{1,18}", size) else ""
    read = f"Only the first {len(response.content):,}{of} bytes were read"
    return f"{read}: the rest was not sent, or is over the setting requests.max_mb."


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


READ_SECONDS = 30.0

LEAST_CHARACTERS = 200  # articles shorter than this are ignored if the page has more text
MAX_ARTICLE_PAGE = 2_000_000
"""Limit on the characters of a page; trafilatura takes minutes for longer ones."""

_SUFFIXES = {
    each.media_type: each.suffixes[0] for each in FORMATS if each.isolated or each is MARKDOWN
}


@dataclass(frozen=True, slots=True)
class Page:
    """A page."""

    title: str
    text: str  # its article, or all its text if no article was found
    site: str = ""  # name of the site; empty if unknown, as are the next two
    author: str = ""
    date: str = ""  # publication date, YYYY-MM-DD


async def page_of(response: WebResponse) -> Page:
    """Returns the readable content of a response."""
    from storage.reading.isolated import run_isolated
    from storage.reading.parse import parse_isolated

    kind = response.media_type
    if response.is_html:
        text = await anyio.to_thread.run_sync(_page_text, response)
        read = partial(read_page, text, response.url)
        return await run_isolated(read, name=response.url, timeout=READ_SECONDS)
    if response.is_text and kind not in _SUFFIXES:
        return Page("", await anyio.to_thread.run_sync(_page_text, response))
    if response.is_text or kind in {*_SUFFIXES, "application/x-pdf", *UNTYPED}:
        path = PurePosixPath(urlsplit(response.url).path)
        suffix = _SUFFIXES.get(kind)  # of a document's type
        name = path.with_suffix(suffix).name if suffix and path.name else path.name or "document"
        parsed = await parse_isolated(response.content, name=name, timeout=READ_SECONDS)
        return Page(parsed.title, parsed.text)
    raise _no_text(response)


def read_page(html: str, url: str) -> Page:
    """Reads a page; runs in a separate process, as hostile pages may take long."""
    import trafilatura

    from storage.reading.htmltext import read_html

    article, about = "", Page("", "")
    if len(html) <= MAX_ARTICLE_PAGE:
        with suppress(Exception):  # of any kind: the whole text is still available
            found = trafilatura.extract(
                html, url=url, output_format="markdown", include_comments=False, include_links=True
            )
            article = found or ""
        with suppress(Exception):
            # Uses only the declared date, instead of guessing from anything that looks like one.
            dates = {"extensive_search": False, "original_date": True}
            known = trafilatura.extract_metadata(html, default_url=url, date_config=dates)
            details = (known.sitename or "", known.author or "", known.date or "")
            about = Page(known.title or "", "", *details)
    if len(article) >= LEAST_CHARACTERS and about.title:
        return Page(about.title, article, about.site, about.author, about.date)
    page = read_html(b"\xef\xbb\xbf" + html.encode("utf-8", "replace"))
    text = article if len(article) >= min(LEAST_CHARACTERS, len(page.text)) else page.text
    return Page(about.title or page.title, text, about.site, about.author, about.date)


def _no_text(response: WebResponse) -> InvalidArgumentsError:
    return InvalidArgumentsError(
        f"{response.url} is of the type {response.media_type[:100]!r}, not text.",
        next_actions=["Use http_request, which shows images and gives other data as base64."],
    )


def _page_text(response: WebResponse) -> str:
    text = response.text()
    if text is None:
        raise _no_text(response)
    return text

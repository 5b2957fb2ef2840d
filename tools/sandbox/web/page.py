"""Reads a response as a page: the article of HTML, parsed documents, or plain text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import TypeVar
from urllib.parse import urlsplit

import anyio.to_thread

from storage.reading import htmltext
from storage.reading.formats import FORMATS, MARKDOWN
from storage.reading.isolated import run_isolated
from storage.reading.parse import parse_isolated
from tools.core.errors import InvalidArgumentsError
from tools.sandbox.web.response import UNTYPED, WebResponse

READ_SECONDS = 30.0

LEAST_CHARACTERS = 200
"""Articles shorter than this are ignored if the page has more text."""

MAX_ARTICLE_PAGE = 2_000_000
"""Limit on the characters of a page; trafilatura takes minutes for longer ones."""

_SUFFIXES = {
    each.media_type: each.suffixes[0] for each in FORMATS if each.isolated or each is MARKDOWN
}

T = TypeVar("T")


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
    kind = response.media_type
    if response.is_html:
        text = await anyio.to_thread.run_sync(_text, response)
        read = partial(read_page, text, response.url)
        return await run_isolated(read, name=response.url, timeout=READ_SECONDS)
    if response.is_text and kind not in _SUFFIXES:
        return Page("", await anyio.to_thread.run_sync(_text, response))
    if response.is_text or kind in {*_SUFFIXES, "application/x-pdf", *UNTYPED}:
        name = _name(response, kind)
        parsed = await parse_isolated(response.content, name=name, timeout=READ_SECONDS)
        return Page(parsed.title, parsed.text)
    raise _no_text(response)


def read_page(html: str, url: str) -> Page:
    """Reads a page; runs in a separate process, as hostile pages may take long."""
    article, about = "", Page("", "")
    if len(html) <= MAX_ARTICLE_PAGE:
        article = _attempt(lambda: _article(html, url)) or ""
        about = _attempt(lambda: _about(html, url)) or about
    if len(article) >= LEAST_CHARACTERS and about.title:
        return Page(about.title, article, about.site, about.author, about.date)
    title, whole, _ = htmltext.read(b"\xef\xbb\xbf" + html.encode("utf-8", "replace"))
    text = article if len(article) >= min(LEAST_CHARACTERS, len(whole)) else whole
    return Page(about.title or title, text, about.site, about.author, about.date)


def _article(html: str, url: str) -> str:
    from trafilatura import extract

    found = extract(
        html, url=url, output_format="markdown", include_comments=False, include_links=True
    )
    return found or ""


def _about(html: str, url: str) -> Page:
    from trafilatura import extract_metadata

    # Uses only the declared date, instead of guessing from anything that looks like one.
    found = extract_metadata(
        html, default_url=url, date_config={"extensive_search": False, "original_date": True}
    )
    return Page(found.title or "", "", found.sitename or "", found.author or "", found.date or "")


def _attempt(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except Exception:  # noqa: BLE001  # whatever the error, the whole text is still available
        return None


def _no_text(response: WebResponse) -> InvalidArgumentsError:
    return InvalidArgumentsError(
        f"{response.url} is of the type {response.media_type[:100]!r}, not text.",
        next_actions=["Use http_request, which shows images and gives other data as base64."],
    )


def _text(response: WebResponse) -> str:
    text = response.text()
    if text is None:
        raise _no_text(response)
    return text


def _name(response: WebResponse, kind: str) -> str:
    """Returns a file name for a document, with the suffix of its type."""
    path = PurePosixPath(urlsplit(response.url).path)
    suffix = _SUFFIXES.get(kind)
    return path.with_suffix(suffix).name if suffix and path.name else path.name or "document"

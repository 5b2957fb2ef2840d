"""A web page's article as Markdown, and what the page says of itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from storage.reading import htmltext

__all__ = ["Page", "read_page"]

LEAST_CHARACTERS = 200
"""A shorter article is taken for none where the page has more."""

MAX_ARTICLE_PAGE = 2_000_000
"""Characters of a page; longer ones take trafilatura minutes."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page:
    """A page.

    Attributes:
        title: Its title; empty if it has none.
        text: Its article, or all its text where none stands out.
        site: Name of the site; empty if it says none, as the next ones.
        author: Who wrote it.
        date: When it was published, YYYY-MM-DD.
    """

    title: str
    text: str
    site: str = ""
    author: str = ""
    date: str = ""


def read_page(html: str, url: str) -> Page:
    """Reads a page; hostile ones take their time, so it is run in a process of its own.

    Args:
        html: The page.
        url: Where it is, against which its links are resolved.
    """
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

    # Not guessed from whatever looks like a date: only what the page declares.
    found = extract_metadata(
        html, default_url=url, date_config={"extensive_search": False, "original_date": True}
    )
    return Page(found.title or "", "", found.sitename or "", found.author or "", found.date or "")


def _attempt(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except Exception:  # noqa: BLE001  # whatever it trips over, the whole text is there
        return None

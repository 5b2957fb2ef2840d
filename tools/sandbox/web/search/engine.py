"""What a search engine is asked, what it answers, and how it fails."""

from __future__ import annotations

import html
import math
import re
import time
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

from tools.core.errors import RateLimitedError, UpstreamError
from tools.sandbox.web.search.language import Language

TITLE_CHARACTERS = 300
SNIPPET_CHARACTERS = 1_000
URL_CHARACTERS = 2_000

TimeLimit = Literal["d", "w", "m", "y"]
"""The last day, week, month or year."""

_WEB_URL = re.compile(r"https?://[^\s\\@/?#]+(?:[/?#]\S*)?", re.IGNORECASE)
_SECONDS = re.compile(r"[0-9]{1,9}")
_TRACKING = re.compile(r"utm_\w+|gclid|fbclid|msclkid")

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,1000}>|<!--.{0,1000}?-->", re.DOTALL)
_JOINERS = {"\u200c", "\u200d"}
"""What scripts and emoji need, of the category that otherwise hides or turns text."""

_SELECTORS = range(0xE0100, 0xE01F0)
"""Variation selectors that no text needs and that can carry hidden bytes."""


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What is searched for.

    Attributes:
        text: In the engine's own words.
        max_results: How many at most, 1 to 20.
        language: In which language; None leaves that to the engine.
        timelimit: How old they may be; None for any age.
        page: From 1.
    """

    text: str
    max_results: int = 5
    language: Language | None = None
    timelimit: TimeLimit | None = None
    page: int = 1


@dataclass(frozen=True, slots=True)
class SearchResult:
    """One result, in plain text.

    Attributes:
        title: Its title.
        snippet: What it says of the query.
        url: Where it is.
        source: The engine that found it.
    """

    title: str
    snippet: str
    url: str
    source: str


class SearchEngine(Protocol):
    """A search engine.

    Attributes:
        name: What results and failures call it.
    """

    @property
    def name(self) -> str: ...  # noqa: D102  # described above

    async def ask(self, query: SearchQuery) -> list[SearchResult]:
        """Returns what it finds, best first, as it says it.

        Raises:
            EngineLimitedError: If it was asked too much, or turns programs away.
        """


class EngineLimitedError(RateLimitedError):
    """An engine that was asked too much.

    Attributes:
        seconds: How long it wants to be left alone; None if it does not say.
    """

    def __init__(self, name: str, how: str, seconds: float | None = None) -> None:
        wait = "a few minutes" if seconds is None else f"{math.ceil(seconds)} seconds"
        super().__init__(
            f"{name} accepts no more searches now ({how}).",
            next_actions=[f"Wait {wait} before the next search.", "Continue with what is known."],
        )
        self.seconds = seconds


def failed(name: str, how: str) -> UpstreamError:
    """The failure of an engine that answers wrongly or not at all."""
    return UpstreamError(
        f"{name} {how}.",
        next_actions=["Try again later, or read a known site with read_web_page."],
    )


def retry_after(value: str) -> float | None:
    """Seconds that a Retry-After header asks for (RFC 9110, 10.2.3); None if it says nothing."""
    if _SECONDS.fullmatch(value.strip()):
        return float(value)
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def distinct(found: Iterable[SearchResult], most: int) -> tuple[SearchResult, ...]:
    """The first results of different pages of the web, in plain text."""
    kept: dict[str, SearchResult] = {}
    for each in found:
        url = each.url.strip()
        if len(kept) >= most:
            break
        if len(url) > URL_CHARACTERS or plain_text(url, URL_CHARACTERS) != url:
            continue  # what hides or spans lines is no address
        if not _WEB_URL.fullmatch(url):
            continue
        title = plain_text(each.title, TITLE_CHARACTERS) or url
        snippet = plain_text(each.snippet, SNIPPET_CHARACTERS)
        key = _page_of(url)
        if key:
            kept.setdefault(key, SearchResult(title, snippet, url, each.source))
    return tuple(kept.values())


def _page_of(url: str) -> str:
    """What addresses of the same page have in common; empty for no address."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removeprefix("www."), parts.port
    except ValueError:
        return ""
    query = [pair for pair in parse_qsl(parts.query, True) if not _TRACKING.fullmatch(pair[0])]  # noqa: FBT003  # keep_blank_values
    where = host if port in {None, 80, 443} else f"{host}:{port}"
    return f"{where}{parts.path.rstrip('/')}?{urlencode(query)}"


def plain_text(text: str, most: int) -> str:
    """Returns a text as one line of at most `most` characters, without markup or hidden characters.

    Tags go before character references are read, so that a text about tags keeps them.
    """
    read = unicodedata.normalize("NFC", html.unescape(_TAG.sub("", text)))
    line = " ".join("".join(" " if each.isspace() else _shown(each) for each in read).split())
    return line if len(line) <= most else f"{line[: most - 2]} …"


def _shown(character: str) -> str:
    is_hidden = unicodedata.category(character)[0] == "C" and character not in _JOINERS
    return "" if is_hidden or ord(character) in _SELECTORS else character

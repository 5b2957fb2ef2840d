"""What a search engine is asked, what it answers, and how it fails."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit

from tools.core.errors import RateLimitedError, UpstreamError
from tools.sandbox.web.plaintext import plain_text
from tools.sandbox.web.search.language import Language

__all__ = [
    "EngineLimitedError",
    "SearchEngine",
    "SearchQuery",
    "SearchResult",
    "TimeLimit",
    "distinct",
    "failed",
    "retry_after",
]

TITLE_CHARACTERS = 300
SNIPPET_CHARACTERS = 1_000
URL_CHARACTERS = 2_000

TimeLimit = Literal["d", "w", "m", "y"]
"""The last day, week, month or year."""

_WEB_URL = re.compile(r"https?://[^\s\\@/?#]+(?:[/?#]\S*)?", re.IGNORECASE)
_SECONDS = re.compile(r"[0-9]{1,9}")
_TRACKING = re.compile(r"utm_\w+|gclid|fbclid|msclkid")


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
    def name(self) -> str: ...  # noqa: D102  # told above

    async def ask(self, query: SearchQuery) -> list[SearchResult]:
        """What it finds, best first, as it says it.

        Raises:
            DeadlineError: If it does not answer in time.
            InvalidArgumentsError: If it cannot be asked that.
            PermissionDeniedError: If it leads where nobody may ask.
            RateLimitedError: If it was asked too much.
            UnavailableError: If the settings do not fit it.
            UpstreamError: If it fails.
        """


class EngineLimitedError(RateLimitedError):
    """An engine that was asked too much.

    Attributes:
        seconds: How long it wants to be left alone; None if it does not say.
    """

    def __init__(self, name: str, how: str, seconds: float | None = None) -> None:
        wait = "a few minutes" if seconds is None else f"{math.ceil(seconds)} seconds"
        super().__init__(
            f"{name} takes no more searches now ({how}).",
            next_actions=[f"Wait {wait} before the next search.", "Go on with what is known."],
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

"""The interface of search engines: queries, languages, results and failures."""

from __future__ import annotations

import html
import math
import re
import time
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Literal, Protocol, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

from tools.core.errors import InvalidArgumentsError, RateLimitedError, UpstreamError

TITLE_CHARACTERS = 300
SNIPPET_CHARACTERS = 1_000
URL_CHARACTERS = 2_000
TimeLimit = Literal["d", "w", "m", "y"]  # the last day, week, month or year
_WEB_URL = re.compile(r"https?://[^\s\\@/?#]+(?:[/?#]\S*)?", re.IGNORECASE)
_SECONDS = re.compile(r"[0-9]{1,9}")
_TRACKING = re.compile(r"utm_\w+|gclid|fbclid|msclkid")

_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,1000}>|<!--.{0,1000}?-->", re.DOTALL)
_JOINERS = {"\u200c", "\u200d"}
"""Joiners that scripts and emoji need; others of their category hide or reverse text."""

_SELECTORS = range(0xE0100, 0xE01F0)
"""Variation selectors that no text needs, and that can carry hidden bytes."""


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A query."""

    text: str  # the query, in the engine's syntax
    max_results: int = 5  # limit on the results, 1 to 20
    language: Language | None = None  # the language; None for the engine's default
    timelimit: TimeLimit | None = None  # maximum age of the results; None for any age
    page: int = 1  # the page of results, from 1


@dataclass(frozen=True, slots=True)
class SearchResult:
    """A search result in plain text."""

    title: str
    snippet: str
    url: str
    source: str


class SearchEngine(Protocol):
    """A search engine.

    Attributes:
        name: Its name in results and failures.
    """

    @property
    def name(self) -> str: ...  # noqa: D102  # documented above

    async def ask(self, query: SearchQuery) -> list[SearchResult]:
        """Returns the results, best first, unmodified.

        Raises EngineLimitedError if it is rate limited, or rejects programs.
        """


class EngineLimitedError(RateLimitedError):
    """An engine is rate limited.

    `seconds` says how long to wait; None if unknown.
    """

    def __init__(self, name: str, how: str, seconds: float | None = None) -> None:
        wait = "a few minutes" if seconds is None else f"{math.ceil(seconds)} seconds"
        super().__init__(
            f"{name} accepts no more searches now ({how}).",
            next_actions=[f"Wait {wait} before the next search.", "Continue with what is known."],
        )
        self.seconds = seconds


def failed(name: str, how: str) -> UpstreamError:
    """Returns the error of an engine that failed."""
    return UpstreamError(
        f"{name} {how}.", next_actions=["Try again later, or read a known site with read_web_page."]
    )


def retry_after(value: str) -> float | None:
    """Parses a Retry-After header to seconds (RFC 9110, 10.2.3); None if invalid."""
    if _SECONDS.fullmatch(value.strip()):
        return float(value)
    try:
        return max(parsedate_to_datetime(value).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return None


def distinct(found: Iterable[SearchResult], most: int) -> tuple[SearchResult, ...]:
    """Returns the first results for different pages, in plain text."""
    kept: dict[str, SearchResult] = {}
    for each in found:
        url = each.url.strip()
        if len(kept) >= most:
            break
        if len(url) > URL_CHARACTERS or plain_text(url, URL_CHARACTERS) != url:
            continue  # an address with hidden characters or line breaks is invalid
        if not _WEB_URL.fullmatch(url):
            continue
        title = plain_text(each.title, TITLE_CHARACTERS) or url
        snippet = plain_text(each.snippet, SNIPPET_CHARACTERS)
        key = _page_of(url)
        if key:
            kept.setdefault(key, SearchResult(title, snippet, url, each.source))
    return tuple(kept.values())


def _page_of(url: str) -> str:
    """Returns a key shared by addresses of the same page; empty if the address is invalid."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").removeprefix("www."), parts.port
    except ValueError:
        return ""
    query = [pair for pair in parse_qsl(parts.query, True) if not _TRACKING.fullmatch(pair[0])]  # noqa: FBT003  # keep_blank_values
    where = host if port in {None, 80, 443} else f"{host}:{port}"
    return f"{where}{parts.path.rstrip('/')}?{urlencode(query)}"


def plain_text(text: str, most: int) -> str:
    """Converts a text to one line of at most `most` characters, without markup or hidden ones.

    Removes tags before it decodes character references, so that a text about tags keeps them.
    """
    read = unicodedata.normalize("NFC", html.unescape(_TAG.sub("", text)))
    line = " ".join(
        "".join(" " if each.isspace() else _without_hidden(each) for each in read).split()
    )
    return line if len(line) <= most else f"{line[: most - 2]} …"


def _without_hidden(character: str) -> str:
    is_hidden = unicodedata.category(character)[0] == "C" and character not in _JOINERS
    return "" if is_hidden or ord(character) in _SELECTORS else character


_FORM = re.compile(r"([a-z]{2})(?:[-_]([a-z]{2}))?", re.IGNORECASE)

_REGIONS = (
    *("xa-ar", "in-bn", "ct-ca", "cz-cs", "dk-da", "gr-el", "us-en", "ee-et", "ir-fa"),
    *("ie-ga", "in-gu", "il-he", "in-hi", "jp-ja", "in-kn", "kr-ko", "in-ml", "in-mr"),
    *("my-ms", "no-nb", "in-pa", "si-sl", "rs-sr", "se-sv", "in-ta", "in-te", "ua-uk"),
    *("vn-vi", "cn-zh"),
)
"""DuckDuckGo regions of languages whose main country has another code."""

_HOMES = {region[3:]: region[:2] for region in _REGIONS}

_BRAVE_NAMES = {
    "en-gb": "en-gb",
    "ja": "jp",
    "no": "nb",
    "pt": "pt-pt",
    "pt-br": "pt-br",
    "zh": "zh-hans",
    "zh-hk": "zh-hant",
    "zh-tw": "zh-hant",
}
_BRAVE_LANGUAGES = {
    *("ar", "bg", "bn", "ca", "cs", "da", "de", "el", "en", "es", "et", "eu", "fi", "fr"),
    *("gl", "gu", "he", "hi", "hr", "hu", "is", "it", "ja", "kn", "ko", "lt", "lv", "ml"),
    *("mr", "ms", "nb", "nl", "no", "pa", "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv"),
    *("ta", "te", "th", "tr", "uk", "vi", "zh"),
}
_BRAVE_COUNTRIES = {
    *("ar", "at", "au", "be", "br", "ca", "ch", "cl", "cn", "de", "dk", "es", "fi", "fr"),
    *("gb", "gr", "hk", "id", "in", "it", "jp", "kr", "mx", "my", "nl", "no", "nz", "ph"),
    *("pl", "pt", "ru", "sa", "se", "tr", "tw", "us", "za"),
}
"""Codes in the Brave Search API's documentation ("Country codes", "Language codes")."""


@dataclass(frozen=True, slots=True)
class Language:
    """A language, with an optional country."""

    code: str  # ISO 639-1, in lower case
    country: str = ""  # ISO 3166-1, in lower case; empty for any

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses `de` or `de-AT`, in any case."""
        form = _FORM.fullmatch(text)
        if form is None:
            raise InvalidArgumentsError(
                f"lang: {text!r} is not a language.",
                next_actions=["Give two letters, or two with a country: en, de, pt-BR."],
            )
        return cls(form[1].lower(), (form[2] or "").lower())

    @property
    def region(self) -> str:
        """The form of ddgs: country and language."""
        country = self.country or _HOMES.get(self.code, self.code)
        return f"{'uk' if country == 'gb' else country}-{self.code}"

    @property
    def tag(self) -> str:
        """The form of SearXNG: language, and country in capitals."""
        return f"{self.code}-{self.country.upper()}" if self.country else self.code

    def for_brave(self) -> dict[str, str]:
        """Returns the parameters for the Brave Search API."""
        if self.code not in _BRAVE_LANGUAGES:
            raise InvalidArgumentsError(
                f"lang: Brave does not know {self.code!r}.",
                suggestions=sorted(_BRAVE_LANGUAGES),
                next_actions=["Give one that it knows, or leave lang out."],
            )
        whole = f"{self.code}-{self.country}"
        name = _BRAVE_NAMES.get(whole) or _BRAVE_NAMES.get(self.code, self.code)
        if self.country not in _BRAVE_COUNTRIES:
            return {"search_lang": name}
        return {"search_lang": name, "country": self.country.upper()}

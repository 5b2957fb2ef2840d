"""Public search engines, queried like a browser does, with the engines of ddgs.

The entry point `DDGS().text` falls back to other engines for unknown names, and cannot tell "rate
limited" or "failed" from "nothing found". So its engines are queried one by one, by name. Their
HTTP client, primp, imitates a browser's TLS handshake. It connects through our own proxy, so that
every address is checked, even after redirects.
"""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from tools.core.errors import DeadlineError, PermissionDeniedError, ToolError, UnavailableError
from tools.sandbox.web.guard import AddressGuard, in_daemon_thread
from tools.sandbox.web.proxy import GuardedProxy, Refusal
from tools.sandbox.web.search_engine import (
    EngineLimitedError,
    SearchQuery,
    SearchResult,
    failed,
    retry_after,
)

if TYPE_CHECKING:
    import primp

MAX_PAGE = 3_000_000  # limit on the decompressed bytes of a page
ANYWHERE = "us-en"  # the default region
_TURNED_AWAY = {HTTPStatus.ACCEPTED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS}
"""Status codes for programs that send too many requests; 202 is DuckDuckGo's."""

_CHALLENGE = re.compile(
    r"captcha|anomaly-modal|challenge-form|unusual traffic|not a robot", re.IGNORECASE
)


def engine_names() -> list[str]:
    """Returns the names of all engines; loads them, and so blocks."""
    from ddgs.engines import ENGINES

    return sorted(ENGINES["text"])


class DdgsEngine:
    """One engine of ddgs.

    `names` are all engines in the settings: none is queried if one of them does not exist.
    """

    def __init__(
        self, name: str, guard: AddressGuard, *, timeout: float, names: Sequence[str] = ()
    ) -> None:
        self.name = name
        self._names = (name, *names)
        self._guard = guard
        self._timeout = timeout

    async def ask(self, query: SearchQuery) -> list[SearchResult]:
        """Returns the engine's results; see `SearchEngine`."""
        refusals: list[Refusal] = []
        proxy = GuardedProxy(
            self._guard, allowed=lambda _host, _port: True, on_refusal=refusals.append
        )
        try:
            async with proxy.serving() as address:  # closing it interrupts a waiting thread
                search = partial(self._search, query, address.url)
                return await asyncio.wrap_future(in_daemon_thread(search, "toolcrib-search"))
        except ToolError:
            if not refusals:
                raise
            raise PermissionDeniedError(
                f"{self.name} redirects to an address that may not be asked: {refusals[-1].why}",
                next_actions=["Have another engine asked: the setting web_search.engines."],
            ) from None

    def _search(self, query: SearchQuery, proxy_url: str) -> list[SearchResult]:
        """Queries the engine; blocks."""
        engine = _engine_class(self.name, self._names)(proxy=proxy_url, timeout=self._timeout)
        browser = _Browser(self.name, engine.http_client.client)
        engine.http_client = browser
        try:
            found = engine.search(
                query.text,
                region=query.language.region if query.language else ANYWHERE,
                timelimit=query.timelimit,
                page=query.page,
            )
        except ToolError:
            raise
        except Exception as error:  # any error of its parser
            how = f"answered with a page that cannot be read ({type(error).__name__})"
            raise failed(self.name, how) from error
        if not found:
            browser.check_empty(query.text)
        return [SearchResult(each.title, each.body, each.href, self.name) for each in found or ()]


@dataclass
class _Result:
    """A result that engines fill in; unlike that of ddgs, it does not unquote URLs."""

    title: str = ""
    href: str = ""
    body: str = ""


def _engine_class(name: str, names: Sequence[str]) -> Any:  # noqa: ANN401  # created at run time
    """Returns the engine with this name, with results whose URLs stay unchanged."""
    known = engine_names()
    unknown = [each for each in names if each not in known]
    if unknown:
        raise UnavailableError(
            f"web_search.engines names {', '.join(map(repr, unknown))}, which ddgs does not know.",
            suggestions=known,
            next_actions=["Ask the user to name engines that it knows in web_search.engines."],
        )
    from ddgs.engines import ENGINES

    kind = ENGINES["text"][name]
    return type(kind.__name__, (kind,), {"result_type": property(lambda _engine: _Result)})


@dataclass(frozen=True, slots=True)
class _Page:
    """The part of a response that engines use."""

    status_code: int
    content: bytes
    text: str


class _Browser:
    """Replaces the HTTP client of ddgs, to report why a page failed and to limit its size."""

    def __init__(self, name: str, client: primp.Client) -> None:
        self.client = client
        self._name = name
        self._last = ""

    def request(self, method: str, url: str, **options: Any) -> _Page:  # noqa: ANN401  # the signature of ddgs
        """Fetches a page of the engine."""
        import primp

        try:
            with self.client.request(method, url, **options | {"stream": True}) as answer:
                self._check_status(answer)
                content = self._read(answer)
        except primp.TimeoutError as error:
            raise DeadlineError(
                f"{self._name} did not answer in time.", next_actions=["Try again later."]
            ) from error
        except primp.PrimpError as error:
            raise failed(self._name, f"was not reached ({type(error).__name__})") from error
        self._last = _decode(content, answer.encoding)
        return _Page(HTTPStatus.OK, content, self._last)

    def check_empty(self, query: str) -> None:
        """Raises an error unless a page without results really has none.

        A genuine page of results repeats the query.
        """
        if _CHALLENGE.search(self._last):
            raise EngineLimitedError(self._name, "it asks for a human")
        text = html.unescape(self._last).casefold()
        is_data = text.lstrip()[:1] in {"[", "{"}
        if not is_data and not all(word in text for word in re.findall(r"\w+", query.casefold())):
            raise failed(self._name, "answered with something that is not a page of results")

    def _check_status(self, answer: primp.Response) -> None:
        status = answer.status_code
        if status in _TURNED_AWAY:
            wait = retry_after(answer.headers.get("retry-after", ""))
            raise EngineLimitedError(self._name, f"status {status}", wait)
        if status != HTTPStatus.OK:
            raise failed(self._name, f"answered with status {status}")

    def _read(self, answer: primp.Response) -> bytes:
        content = bytearray()
        for part in answer.iter_bytes():
            content += part
            if len(content) > MAX_PAGE:
                raise failed(self._name, f"answered with more than {MAX_PAGE:,} bytes")
        return bytes(content)


def _decode(content: bytes, encoding: str) -> str:
    try:
        return content.decode(encoding, "replace")
    except LookupError:
        return content.decode("utf-8", "replace")

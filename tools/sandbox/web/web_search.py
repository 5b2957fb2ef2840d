"""Web search: queries engines in turn, within limits of time and number."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import anyio

from tools.core.errors import (
    DeadlineError,
    InvalidArgumentsError,
    PermissionDeniedError,
    RateLimitedError,
    ToolError,
    UpstreamError,
)
from tools.sandbox.web.client import WebClient
from tools.sandbox.web.ddgs_engines import DdgsEngine
from tools.sandbox.web.guard import AddressGuard
from tools.sandbox.web.json_engines import BRAVE_URL, BraveEngine, SearxngEngine
from tools.sandbox.web.search_engine import (
    EngineLimitedError,
    Language,
    SearchEngine,
    SearchQuery,
    SearchResult,
    TimeLimit,
    distinct,
)
from tools.sandbox.web.url import Url

MOST_RESULTS = 20
MAX_ANSWER = 3_000_000  # limit on the bytes of an engine's response
_TELLING = (RateLimitedError, DeadlineError, UpstreamError, PermissionDeniedError)
"""Errors after which the next engine is tried, most informative first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPace:
    """Limits of a search."""

    per_minute: int = 20  # searches per minute, over all callers
    turn_seconds: float = 2.0  # maximum wait for the rate limit
    seconds: float = 30.0  # time limit over all engines and attempts
    engine_seconds: float = 10.0  # time limit for one engine in one attempt
    attempts: int = 3  # rounds through the engines
    first_wait: float = 0.5  # seconds before the second attempt; doubled before each further one
    longest_wait: float = 5.0  # maximum seconds between attempts, even if an engine asks for more


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search."""

    results: tuple[SearchResult, ...]
    engine: str


class WebSearch:
    """Queries engines in turn until one has results.

    The client of the engines is closed in the end.
    """

    def __init__(
        self,
        engines: Sequence[SearchEngine],
        *,
        pace: SearchPace | None = None,
        client: WebClient | None = None,
    ) -> None:
        from aiolimiter import AsyncLimiter

        self._engines = tuple(engines)
        self._pace = pace or SearchPace()
        self._client = client
        self._limiter = AsyncLimiter(self._pace.per_minute)

    async def search(
        self,
        query: str,
        *,
        max_results: int = 5,
        lang: str = "",
        timelimit: TimeLimit | None = None,
        page: int = 1,
    ) -> Found:
        """Searches the web.

        `lang` is `de` or `pt-BR`, for example; empty for the engine's default.
        """
        language = Language.parse(lang) if lang else None
        wanted = SearchQuery(query, min(max_results, MOST_RESULTS), language, timelimit, page)
        await self._take_turn()
        with anyio.move_on_after(self._pace.seconds):
            return await self._ask(wanted)
        raise _late("The search", self._pace.seconds)

    async def aclose(self) -> None:
        """Closes the HTTP client."""
        if self._client is not None:
            await self._client.aclose()

    async def _take_turn(self) -> None:
        with anyio.move_on_after(self._pace.turn_seconds):
            await self._limiter.acquire()
            return
        wait = math.ceil(60 / self._pace.per_minute)
        raise RateLimitedError(
            f"More than {self._pace.per_minute} searches a minute were asked for.",
            next_actions=[
                f"Wait {wait} seconds before the next search.",
                "If more are needed, the user can raise web_search.per_minute.",
            ],
        )

    async def _ask(self, wanted: SearchQuery) -> Found:
        import stamina

        pace = self._pace
        async for attempt in stamina.retry_context(
            on=self._backoff,
            attempts=pace.attempts,
            timeout=pace.seconds,
            wait_initial=pace.first_wait,
            wait_max=pace.longest_wait,
            wait_jitter=pace.first_wait,
        ):
            with attempt:
                return await self._ask_in_turn(wanted)
        raise AssertionError  # stamina raises the error of the last attempt

    def _backoff(self, error: Exception) -> bool | float:
        """Returns whether to try again, or the seconds to wait first."""
        if isinstance(error, EngineLimitedError):
            is_soon = error.seconds is not None and error.seconds <= self._pace.longest_wait
            return is_soon and (error.seconds or self._pace.first_wait)
        return isinstance(error, UpstreamError)

    async def _ask_in_turn(self, wanted: SearchQuery) -> Found:
        """Makes one attempt: returns the results of the first engine that has any."""
        failures: list[ToolError] = []
        nothing_from = ""
        for engine in self._engines:
            try:
                found = await self._ask_one(engine, wanted)
            except _TELLING as error:
                failures.append(error)
                continue
            results = distinct(found, wanted.max_results)
            if results:
                return Found(results, engine.name)
            nothing_from = nothing_from or engine.name
        if nothing_from:
            return Found((), nothing_from)
        raise _most_telling(failures)

    async def _ask_one(self, engine: SearchEngine, wanted: SearchQuery) -> list[SearchResult]:
        with anyio.move_on_after(self._pace.engine_seconds):
            return await engine.ask(wanted)
        raise _late(engine.name, self._pace.engine_seconds)


def make_search(
    *,
    provider: str,
    engines: Sequence[str] = (),
    url: str = "",
    api_key: str = "",
    per_minute: int = 20,
    private: Collection[str] = (),
    proxy: str = "",
    pace: SearchPace | None = None,
) -> WebSearch:
    """Creates the search described in the settings.

    `url` is that of the SearXNG instance, or another one of Brave's API; it may be private, since
    it comes from the settings, like each `host:port` in `private`. `proxy` serves SearXNG and
    Brave; ddgs uses its own.
    """
    pace = pace or SearchPace(per_minute=per_minute)
    if provider == "ddgs":
        guard = AddressGuard(private)
        seconds = pace.engine_seconds
        return WebSearch(
            [DdgsEngine(name, guard, timeout=seconds, names=engines) for name in engines], pace=pace
        )
    guard = AddressGuard((*private, *([Url.parse(url).host_port] if url else [])))
    client = WebClient(guard, proxy=proxy, timeout=pace.seconds, max_bytes=MAX_ANSWER)
    engine: SearchEngine
    match provider:
        case "searxng":
            engine = SearxngEngine(client, url)
        case "brave":
            engine = BraveEngine(client, api_key, url or BRAVE_URL)
        case _:
            raise InvalidArgumentsError(f"web_search.provider: {provider!r} is unknown.")
    return WebSearch([engine], pace=pace, client=client)


def _late(what: str, seconds: float) -> DeadlineError:
    return DeadlineError(
        f"{what} did not answer within {seconds:g} seconds.",
        next_actions=["Try again later, or with simpler words."],
    )


def _most_telling(failures: Sequence[ToolError]) -> ToolError:
    """Combines the failures of all engines into one."""
    if len(failures) == 1:
        return failures[0]
    first = next(error for kind in _TELLING for error in failures if isinstance(error, kind))
    messages = " ".join(error.message for error in failures)
    first.message = f"No engine answered. {messages}"
    return first

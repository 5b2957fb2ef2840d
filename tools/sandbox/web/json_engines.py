"""Search engines with a JSON API: Brave and SearXNG.

https://api-dashboard.search.brave.com/documentation/services/web-search
https://docs.searxng.org/dev/search_api.html
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from pydantic import BaseModel, BeforeValidator, ValidationError

from tools.core.errors import InvalidArgumentsError, UnavailableError
from tools.sandbox.web.client import WebClient
from tools.sandbox.web.response import WebResponse
from tools.sandbox.web.search_engine import (
    EngineLimitedError,
    SearchQuery,
    SearchResult,
    failed,
    retry_after,
)

BRAVE_URL = "https://api.search.brave.com/res/v1/web/search"

MOST_PAGES = 10
MOST_CHARACTERS = 400
MOST_WORDS = 50

_REFUSED_KEY = {HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED, HTTPStatus.FORBIDDEN}
_WRONG_KEY = b"SUBSCRIPTION_TOKEN_INVALID"


AnswerT = TypeVar("AnswerT", bound=BaseModel)


def _parse(kind: type[AnswerT], content: bytes, engine: str) -> AnswerT:
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        raise failed(engine, "answered with something that is not a list of results") from error


class _BraveResult(BaseModel):
    title: str = ""
    url: str = ""
    description: str = ""


class _Web(BaseModel):
    results: list[_BraveResult] = []


class _BraveAnswer(BaseModel):
    type: str
    web: _Web | None = None


class BraveEngine:
    """Queries the Brave Search API."""

    name = "brave"

    def __init__(self, client: WebClient, key: str, url: str = BRAVE_URL) -> None:
        self._client = client
        self._key = key
        self._url = url

    async def ask(self, query: SearchQuery) -> list[SearchResult]:
        """Returns the API's results; see `SearchEngine`."""
        answer = await self._client.request(
            "GET",
            f"{self._url}?{urlencode(_parameters(query))}",
            headers={"Accept": "application/json", "X-Subscription-Token": self._key},
        )
        if answer.status == HTTPStatus.OK:
            return self._results(answer.content)
        if answer.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise EngineLimitedError(self.name, "status 429", _wait(answer))
        if answer.status in _REFUSED_KEY or _WRONG_KEY in answer.content:
            raise UnavailableError(
                f"Brave does not take the key (status {answer.status}).",
                next_actions=["Ask the user to check web_search.api_key and the subscription."],
            )
        raise failed(self.name, f"answered with status {answer.status}")

    def _results(self, content: bytes) -> list[SearchResult]:
        answer = _parse(_BraveAnswer, content, self.name)
        found = answer.web.results if answer.web else []
        return [SearchResult(each.title, each.description, each.url, self.name) for each in found]


def _parameters(query: SearchQuery) -> dict[str, str]:
    if len(query.text) > MOST_CHARACTERS or len(query.text.split()) > MOST_WORDS:
        raise InvalidArgumentsError(
            f"query: Brave takes at most {MOST_CHARACTERS} characters and {MOST_WORDS} words.",
            next_actions=["Ask in fewer words."],
        )
    if query.page > MOST_PAGES:
        raise InvalidArgumentsError(
            f"page: Brave has no page {query.page}, only {MOST_PAGES}.",
            next_actions=["Narrow the query instead."],
        )
    parameters = {
        "q": query.text,
        "count": str(query.max_results),
        "offset": str(query.page - 1),
        "text_decorations": "false",
        "result_filter": "web",
    }
    if query.timelimit is not None:
        parameters["freshness"] = f"p{query.timelimit}"
    if query.language is not None:
        parameters |= query.language.for_brave()
    return parameters


def _wait(answer: WebResponse) -> float | None:
    """Returns the seconds until the first exhausted rate limit resets."""
    asked = retry_after(answer.header("retry-after"))
    if asked is not None:
        return asked
    left = answer.header("x-ratelimit-remaining").split(",")
    resets = answer.header("x-ratelimit-reset").split(",")
    waits = [
        float(reset)
        for remaining, reset in zip(left, resets, strict=False)
        if remaining.strip() == "0" and reset.strip().isdecimal()
    ]
    return max(waits, default=None)


_RANGES = {"d": "day", "w": "week", "m": "month", "y": "year"}


_Text = Annotated[str, BeforeValidator(lambda value: value if isinstance(value, str) else "")]


class _SearxngResult(BaseModel):
    title: _Text = ""
    url: _Text = ""
    content: _Text = ""
    engine: _Text = ""


class _SearxngAnswer(BaseModel):
    results: list[_SearxngResult]
    unresponsive_engines: list[Any] = []


class SearxngEngine:
    """Queries an instance of SearXNG."""

    name = "searxng"

    def __init__(self, client: WebClient, url: str) -> None:
        self._client = client
        self._url = url.rstrip("/").removesuffix("/search")

    async def ask(self, query: SearchQuery) -> list[SearchResult]:
        """Returns the instance's results, each with its underlying engine."""
        parameters = {"q": query.text, "format": "json", "pageno": str(query.page)}
        if query.language is not None:
            parameters["language"] = query.language.tag
        if query.timelimit is not None:
            parameters["time_range"] = _RANGES[query.timelimit]
        answer = await self._client.request(
            "GET",
            f"{self._url}/search?{urlencode(parameters)}",
            headers={"Accept": "application/json"},
        )
        match answer.status:
            case HTTPStatus.OK:
                return self._results(answer.content)
            case HTTPStatus.FORBIDDEN:
                raise UnavailableError(
                    f"{self._url} refuses to answer with JSON (status 403).",
                    next_actions=[
                        "Ask the user to add json to search.formats in its settings.yml.",
                        "Restart it afterwards.",
                    ],
                )
            case HTTPStatus.TOO_MANY_REQUESTS:
                wait = retry_after(answer.header("retry-after"))
                raise EngineLimitedError(self.name, "status 429 of its limiter", wait)
            case HTTPStatus.NOT_FOUND:
                raise UnavailableError(
                    f"{self._url} is not a SearXNG instance (status 404).",
                    next_actions=["Ask the user to check the setting web_search.url."],
                )
            case status:
                raise failed(self.name, f"answered with status {status}")

    def _results(self, content: bytes) -> list[SearchResult]:
        answer = _parse(_SearxngAnswer, content, self.name)
        if not answer.results and answer.unresponsive_engines:
            raise failed(self.name, "found nothing: the engines behind it do not answer")
        return [
            SearchResult(each.title, each.content, each.url, each.engine or self.name)
            for each in answer.results
        ]

"""SearXNG: a self-hosted search engine, queried through its JSON API.

https://docs.searxng.org/dev/search_api.html
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import urlencode

from pydantic import BaseModel, BeforeValidator, ValidationError

from tools.core.errors import UnavailableError
from tools.sandbox.web.client import WebClient
from tools.sandbox.web.search.engine import (
    EngineLimitedError,
    SearchQuery,
    SearchResult,
    failed,
    retry_after,
)

_RANGES = {"d": "day", "w": "week", "m": "month", "y": "year"}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


_Text = Annotated[str, BeforeValidator(_text)]


class _Result(BaseModel):
    title: _Text = ""
    url: _Text = ""
    content: _Text = ""
    engine: _Text = ""


class _Answer(BaseModel):
    results: list[_Result]
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
        try:
            answer = _Answer.model_validate_json(content)
        except ValidationError as error:
            raise failed(
                self.name, "answered with something that is not a list of results"
            ) from error
        if not answer.results and answer.unresponsive_engines:
            raise failed(self.name, "found nothing: the engines behind it do not answer")
        return [
            SearchResult(each.title, each.content, each.url, each.engine or self.name)
            for each in answer.results
        ]

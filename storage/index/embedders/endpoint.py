"""An endpoint of OpenAI's API, as OpenAI, Ollama, llama.cpp, vLLM and others have it.

Request and response: https://platform.openai.com/docs/api-reference/embeddings
"""

from __future__ import annotations

import json
import random
import time
import weakref
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from storage.errors import StorageUnavailableError
from storage.index.embedders.bundled import LazyLoader
from storage.outbound import ClientFactory, plain_client

if TYPE_CHECKING:
    import httpx2


RETRIES = 4  # how often a request is retried, after about half a second, one, two and four
FIRST_WAIT = 0.5
MAX_ANSWER_BYTES = 64_000_000
SHOWN = 200  # characters of an error response that our error quotes
_REACH = "Check embedder.url, and that the server there is running."
_KEY = "Check embedder.api_key."
_ASK = "Check embedder.url and embedder.model."
_WAIT = "It is retried; searches go by words meanwhile."


class _RefusalError(Exception):
    """A failed request: the problem, the advice, and the seconds until a useful retry."""

    def __init__(self, problem: str, advice: str, wait: float | None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.advice = advice
        self.wait = wait


class Endpoint:
    """An address to post to; redirects are not followed, so that no other host gets the token.

    `timeout` is the seconds until the answer must be complete, retries included.
    """

    def __init__(
        self, url: str, token: str, *, timeout: float, client: ClientFactory = plain_client
    ) -> None:
        self.url = url
        self._token = token
        self._timeout = timeout
        self._new_client = client
        self._client = LazyLoader(self._make_client, url)

    def post(self, body: Mapping[str, Any]) -> bytes:
        """Posts a body as JSON and returns the response."""
        end = time.monotonic() + self._timeout
        content = json.dumps(body).encode()
        for pause in [FIRST_WAIT * 2**attempt for attempt in range(RETRIES)]:
            try:
                return self._post(content, end)
            except _RefusalError as refusal:
                if refusal.wait is None:
                    raise self._error(refusal) from None
                spread = pause * random.uniform(0.75, 1.25)  # noqa: S311  # spreads load, no secret
                wait = max(refusal.wait, spread)
                if time.monotonic() + wait >= end:
                    raise self._error(refusal) from None
            time.sleep(wait)
        try:
            return self._post(content, end)
        except _RefusalError as refusal:
            raise self._error(refusal) from None

    def _post(self, content: bytes, end: float) -> bytes:
        import httpx2

        client = self._client()
        answer = bytearray()
        try:
            with client.stream(
                "POST", self.url, content=content, timeout=max(end - time.monotonic(), 0.001)
            ) as response:
                for part in response.iter_bytes():
                    answer += part
                    if len(answer) > MAX_ANSWER_BYTES:
                        raise _RefusalError("sends an endless response", _ASK, None)
                    if time.monotonic() > end:
                        raise httpx2.ReadTimeout("the response was too slow")
        except httpx2.TimeoutException as error:
            problem = f"did not respond within {self._timeout:g} s"
            raise _RefusalError(problem, f"{_REACH} embedder.timeout allows more.", None) from error
        except httpx2.TransportError as error:
            raise _RefusalError(f"cannot be reached: {error}", _REACH, 0.0) from error
        except (httpx2.InvalidURL, httpx2.RequestError) as error:
            raise _RefusalError(f"cannot be used: {error}", _ASK, None) from error
        if response.status_code == 200:  # noqa: PLR2004  # the protocol's success
            return bytes(answer)
        raise _refusal(response.status_code, response.headers.get("retry-after", ""), bytes(answer))

    def _make_client(self) -> httpx2.Client:
        client = self._new_client(self.url)
        client.headers["Content-Type"] = "application/json"
        if self._token:
            client.headers["Authorization"] = f"Bearer {self._token}"
        weakref.finalize(self, client.close)
        return client

    def _error(self, refusal: _RefusalError) -> StorageUnavailableError:
        message = f"{self.url} {refusal.problem}."
        if self._token:  # a server may echo the token
            message = message.replace(self._token, "***")
        return StorageUnavailableError(message, suggestions=(refusal.advice,))


def _refusal(status: int, retry_after: str, answer: bytes) -> _RefusalError:
    """Classifies an error response (RFC 9110, section 15)."""
    quoted = " ".join(answer.decode(errors="replace").split())[:SHOWN]
    problem = f"answered {status}: {quoted}" if quoted else f"answered {status}"
    if status == 429 or status >= 500:  # noqa: PLR2004  # too many requests, and server errors
        return _RefusalError(problem, _WAIT, _seconds(retry_after))
    return _RefusalError(problem, _KEY if status in {401, 403} else _ASK, None)


def _seconds(retry_after: str) -> float:
    """Parses the header's wait: seconds or a date (RFC 9110, 10.2.3); 0 if it is neither."""
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after)
    try:
        moment = parsedate_to_datetime(retry_after)
    except ValueError:
        return 0.0
    if moment.tzinfo is None:  # "-0000" means an unknown zone
        moment = moment.replace(tzinfo=UTC)
    return max((moment - datetime.now(UTC)).total_seconds(), 0.0)

"""Embedders behind OpenAI's embeddings API: OpenAI, Ollama, llama.cpp, vLLM and others.

Request and response: https://platform.openai.com/docs/api-reference/embeddings
"""

from __future__ import annotations

import json
from typing import Any

from storage.errors import StorageUnavailableError
from storage.index.embedders.base import DEFAULT_FLOOR, Prefixes, PrefixingEmbedder, TextKind
from storage.index.embedders.endpoint import Endpoint
from storage.outbound import ClientFactory, plain_client

DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_MODEL = "text-embedding-3-small"
BATCH_SIZE = 32  # texts per request; some servers refuse more


class OpenAIEmbedder(PrefixingEmbedder):
    """A model behind an endpoint.

    Args:
        url: The base URL of the API; empty means OpenAI's own.
        model: The model's name there; empty means text-embedding-3-small.
        api_key: Sent as a bearer token if not empty; never appears in a log or an error.
        dimensions: Length of vector to request, for models that offer several; 0 requests none.
        timeout: Seconds that one request may take, retries included.
    """

    def __init__(  # noqa: PLR0913  # the options of a model
        self,
        url: str = "",
        model: str = "",
        *,
        api_key: str = "",
        dimensions: int = 0,
        timeout: float = 30.0,
        prefixes: Prefixes = Prefixes(),  # noqa: B008  # immutable
        cjk: bool = True,
        floor: float = DEFAULT_FLOOR,
        client: ClientFactory = plain_client,
    ) -> None:
        name = model or DEFAULT_MODEL
        cut = f"/{dimensions}" if dimensions else ""
        super().__init__(f"openai:{name}{cut}", prefixes, cjk=cjk, floor=floor)
        self._request: dict[str, Any] = {"model": name, "encoding_format": "float"}
        if dimensions:
            self._request["dimensions"] = dimensions
        self._endpoint = Endpoint(
            f"{(url or DEFAULT_URL).rstrip('/')}/embeddings",
            api_key,
            timeout=timeout,
            client=client,
        )
        self._source = self._endpoint.url

    def _run(self, kind: TextKind, texts: list[str]) -> list[list[float]]:
        read = self._prefixes.before(kind, texts)
        rows: list[list[float]] = []
        for start in range(0, len(read), BATCH_SIZE):
            batch = read[start : start + BATCH_SIZE]
            answer = self._endpoint.post({**self._request, "input": batch})
            rows += self._rows(answer, len(batch))
        return rows

    def _rows(self, answer: bytes, count: int) -> list[list[float]]:
        """Parses a response to vectors in the order of the texts, which `index` gives."""
        try:
            data = json.loads(answer)["data"]
            placed = {item["index"]: item["embedding"] for item in data}
            return [placed[place] for place in range(count)]
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise StorageUnavailableError(
                f"{self._endpoint.url} did not return {count} embeddings.",
                suggestions=("Check that embedder.url is that of an OpenAI-compatible API.",),
            ) from error

"""Any endpoint that speaks OpenAI's embeddings API: OpenAI, Ollama, llama.cpp, vLLM and others.

The request and the answer: https://platform.openai.com/docs/api-reference/embeddings
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

BATCH_SIZE = 32
"""Texts a request; some servers refuse more."""


class OpenAIEmbedder(PrefixingEmbedder):
    """A model behind an endpoint.

    Args:
        url: Where the API begins; empty means OpenAI's own.
        model: The model's name there; empty means text-embedding-3-small.
        api_key: Sent as a bearer token where it is not empty; never in a log or an error.
        dimensions: Length of vector to ask for, of models that offer several; 0 asks for none.
        timeout: Seconds that one request may take, with all its repetitions.
        prefixes: What the model reads before a text.
        cjk: Whether it reads Chinese, Japanese and Korean.
        floor: Cosine below which texts have nothing to do with each other.
        client: Makes the client that asks the endpoint.
    """

    def __init__(  # noqa: PLR0913  # what can be set of a model
        self,
        url: str = "",
        model: str = "",
        *,
        api_key: str = "",
        dimensions: int = 0,
        timeout: float = 30.0,
        prefixes: Prefixes = Prefixes(),  # noqa: B008  # it cannot be changed
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
        """The vectors of an answer in the order of their texts, which `index` tells."""
        try:
            data = json.loads(answer)["data"]
            placed = {item["index"]: item["embedding"] for item in data}
            return [placed[place] for place in range(count)]
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise StorageUnavailableError(
                f"{self._endpoint.url} did not answer with {count} embeddings.",
                suggestions=("Check that embedder.url is that of an OpenAI-compatible API.",),
            ) from error

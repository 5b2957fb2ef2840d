"""Any endpoint that speaks OpenAI's embeddings API: OpenAI, Ollama, llama.cpp, vLLM and others.

The request and the answer: https://platform.openai.com/docs/api-reference/embeddings
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from storage.clients import ClientFactory, plain_client
from storage.errors import StorageUnavailableError
from storage.index.embedders.endpoint import Endpoint
from storage.index.embedders.prefixes import Prefixes
from storage.index.embedders.protocol import DEFAULT_FLOOR
from storage.index.embedders.unit import unit_rows

if TYPE_CHECKING:
    from storage.index.embedders.protocol import Vectors

__all__ = ["OpenAIEmbedder"]

NAME = "openai"
DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_MODEL = "text-embedding-3-small"

BATCH_SIZE = 32
"""Texts a request; some servers refuse more."""


class OpenAIEmbedder:
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
        client: Makes what asks the endpoint.
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
        self._request: dict[str, Any] = {
            "model": model or DEFAULT_MODEL,
            "encoding_format": "float",
        }
        if dimensions:
            self._request["dimensions"] = dimensions
        cut = f"/{dimensions}" if dimensions else ""
        self.model_id = f"{NAME}:{model or DEFAULT_MODEL}{cut}{prefixes}"
        self.cjk = cjk
        self.floor = floor
        self._prefixes = prefixes
        self._endpoint = Endpoint(
            f"{(url or DEFAULT_URL).rstrip('/')}/embeddings",
            api_key,
            timeout=timeout,
            client=client,
        )

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text, float32, unit length.

        Raises:
            StorageUnavailableError: If the endpoint cannot be reached, refuses, or answers wrongly.
        """
        return self._embed(self._prefixes.of_passages(texts))

    def embed_query(self, text: str) -> Vectors:
        """One vector, float32, unit length.

        Raises:
            StorageUnavailableError: If the endpoint cannot be reached, refuses, or answers wrongly.
        """
        vector: Vectors = self._embed([self._prefixes.of_query(text)])[0]
        return vector

    def _embed(self, texts: list[str]) -> Vectors:
        rows: list[list[float]] = []
        for start in range(0, len(texts), BATCH_SIZE):
            batch = texts[start : start + BATCH_SIZE]
            answer = self._endpoint.post({**self._request, "input": batch})
            rows += self._rows(answer, len(batch))
        return unit_rows(rows, len(texts), self._endpoint.url)

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

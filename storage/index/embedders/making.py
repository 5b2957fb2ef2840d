"""Makes embedders from plain options: the bundled one, or one of an optional library or an API."""

from __future__ import annotations

import importlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from storage.errors import StorageUnavailableError
from storage.index.embedders.base import (
    Embedder,
    EmbedderKind,
    EmbedderOptions,
    TextKind,
    unit_rows,
)
from storage.index.embedders.bundled import LazyLoader, MiniLMEmbedder, failures_of
from storage.index.embedders.e5 import E5Embedder
from storage.index.embedders.endpoint import Endpoint
from storage.outbound import ClientFactory, opt_out, plain_client
from storage.tokenize import SPACELESS_LETTERS

if TYPE_CHECKING:
    from storage.index.embedders.base import Rows, Vectors


DEFAULT_URL = "https://api.openai.com/v1"
DEFAULT_MODEL = "text-embedding-3-small"
REQUEST_TEXTS = 32  # texts per request to an endpoint; some servers refuse more
BATCH_SIZE = 8  # texts per run of a model, which pads a batch to its longest text


class PrefixingEmbedder(ABC):
    """An embedder that prefixes queries and passages, and normalizes the model's vectors.

    `model_id` identifies the model and all else that changes its vectors, except the prefixes.
    """

    def __init__(self, model_id: str, options: EmbedderOptions) -> None:
        self._prefix = {"query": options.query_prefix, "passage": options.passage_prefix}
        prefixes = " ".join(map(repr, self._prefix.values()))
        self.model_id = f"{model_id} {prefixes}" if any(self._prefix.values()) else model_id
        self.unread = "" if options.cjk else SPACELESS_LETTERS
        self.floor = options.floor
        self._source = self.model_id  # what errors name

    def prefixed(self, kind: TextKind, texts: Sequence[str]) -> list[str]:
        """Returns the texts with their prefix, which includes the blank ("query: ")."""
        return [self._prefix[kind] + text for text in texts]

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text, float32, unit length."""
        return self._embed("passage", list(texts))

    def embed_query(self, text: str) -> Vectors:
        """Returns one vector, float32, unit length."""
        vector: Vectors = self._embed("query", [text])[0]
        return vector

    def _embed(self, kind: TextKind, texts: list[str]) -> Vectors:
        with failures_of(self._source):
            rows = self._run(kind, texts)
        return unit_rows(rows, len(texts), self._source)

    @abstractmethod
    def _run(self, kind: TextKind, texts: list[str]) -> Rows:
        """Returns the model's own vectors, one per text."""


def cut_of(options: EmbedderOptions) -> str:
    """Returns the part of a model_id that names a length to which vectors are cut."""
    return f"/{options.dimensions}" if options.dimensions else ""


def import_extra(module: str, extra: str) -> Any:
    """Imports a module that an extra of the package installs."""
    opt_out()
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise StorageUnavailableError(
            f"The embedder {extra!r} needs the module {module}: {error}.",
            suggestions=(f'Run: pip install "toolcrib[{extra}]"',),
        ) from error


class FastEmbedEmbedder(PrefixingEmbedder):
    """A model of `fastembed.TextEmbedding.list_supported_models()`: ONNX on the CPU.

    Without a folder, its files are downloaded on first use. fastembed adds no prefixes itself.
    """

    def __init__(self, options: EmbedderOptions) -> None:
        self._name = options.model or "BAAI/bge-small-en-v1.5"
        self._folder = options.folder and str(options.folder)
        super().__init__(f"fastembed:{self._name}", options)
        self._model = LazyLoader(self._load, f"fastembed's model {self._name!r}")

    def _load(self) -> Any:
        library = import_extra("fastembed", "fastembed")
        return library.TextEmbedding(self._name, specific_model_path=self._folder)

    def _run(self, kind: TextKind, texts: list[str]) -> Rows:
        return list(self._model().embed(self.prefixed(kind, texts), batch_size=BATCH_SIZE))


class SentenceTransformersEmbedder(PrefixingEmbedder):
    """A PyTorch model from the hub or a folder, on the best available device.

    Without a folder, its files are downloaded on first use. `dimensions` cuts its vectors, if the
    model supports that. Without prefixes, the model's own prompts are used.
    """

    def __init__(self, options: EmbedderOptions) -> None:
        name = options.model or "sentence-transformers/all-MiniLM-L6-v2"
        super().__init__(f"sentence-transformers:{name}{cut_of(options)}", options)
        self._file = str(options.folder or name)
        self._dimensions = options.dimensions or None
        self._model = LazyLoader(self._load, f"sentence-transformers' model {name!r}")

    def _load(self) -> Any:
        library = import_extra("sentence_transformers", "sentence-transformers")
        return library.SentenceTransformer(self._file, truncate_dim=self._dimensions)

    def _run(self, kind: TextKind, texts: list[str]) -> Rows:
        encode = "encode_query" if kind == "query" else "encode_document"
        rows: Rows = getattr(self._model(), encode)(
            texts, prompt=self._prefix[kind] or None, batch_size=BATCH_SIZE, show_progress_bar=False
        )
        return rows


class OpenAIEmbedder(PrefixingEmbedder):
    """A model behind an endpoint.

    The API key is sent as a bearer token if there is one, and never appears in a log or an error.
    `dimensions` requests vectors of a length, of models that offer several.
    """

    def __init__(self, options: EmbedderOptions, client: ClientFactory = plain_client) -> None:
        name = options.model or DEFAULT_MODEL
        super().__init__(f"openai:{name}{cut_of(options)}", options)
        self._request: dict[str, Any] = {"model": name, "encoding_format": "float"}
        if options.dimensions:
            self._request["dimensions"] = options.dimensions
        url = f"{(options.url or DEFAULT_URL).rstrip('/')}/embeddings"
        self._endpoint = Endpoint(url, options.api_key, timeout=options.timeout, client=client)
        self._source = self._endpoint.url

    def _run(self, kind: TextKind, texts: list[str]) -> list[list[float]]:
        read = self.prefixed(kind, texts)
        rows: list[list[float]] = []
        for start in range(0, len(read), REQUEST_TEXTS):
            batch = read[start : start + REQUEST_TEXTS]
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


def make_embedder(options: EmbedderOptions, *, client: ClientFactory = plain_client) -> Embedder:
    """Makes the embedder of the options."""
    match options.kind:
        case "minilm":
            return MiniLMEmbedder()
        case "e5":
            return E5Embedder()
        case "fastembed":
            return FastEmbedEmbedder(options)
        case "sentence-transformers":
            return SentenceTransformersEmbedder(options)
        case "openai":
            return OpenAIEmbedder(options, client)


def find_embedder(
    options: EmbedderOptions, model_id: str, *, client: ClientFactory = plain_client
) -> Embedder | None:
    """Makes the embedder with a model_id, if the options describe it except for their kind.

    Nothing is sent to an endpoint once the options give neither its URL nor its key.
    """
    for kind in get_args(EmbedderKind):
        if kind == "openai" and not (options.url or options.api_key):
            continue
        embedder = make_embedder(replace(options, kind=kind), client=client)
        if embedder.model_id == model_id:
            return embedder
    return None

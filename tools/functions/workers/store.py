"""Opens the stored context for function files that the settings allow to have it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from pydantic_core import to_jsonable_python

from storage.index.embedders.base import EmbedderOptions
from storage.index.embedders.making import find_embedder, make_embedder

if TYPE_CHECKING:  # a worker that opens none starts without it
    from storage.library import Library


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The server's options for opening the stored context, for a worker."""

    directory: Path
    embedder: EmbedderOptions  # embeds queries; the server embeds stored content
    chroma_url: str  # address of a Chroma server; empty means embedded Chroma
    private: tuple[str, ...]  # each `host:port` that is contacted directly, without the proxy
    proxy: str
    alpha: float
    max_document_bytes: int

    @staticmethod
    def decode(sent: Mapping[str, Any]) -> StoreOptions:
        """Decodes the output of `encode`."""
        return TypeAdapter(StoreOptions).validate_python(sent)

    def encode(self) -> dict[str, Any]:
        """Encodes the options as plain data, including the embedder's key."""
        encoded: dict[str, Any] = to_jsonable_python(asdict(self))
        return encoded

    def open(self) -> Library:
        """Opens it in parallel to the server, whose indexer embeds what is added here."""
        from storage.library import Library
        from tools.sandbox.web.blocking import endpoint_client

        client = partial(endpoint_client, private=self.private, proxy=self.proxy)
        return Library(
            self.directory,
            make_embedder(self.embedder, client=client),
            make=partial(find_embedder, self.embedder, client=client),
            chroma_url=self.chroma_url,
            client=client,
            alpha=self.alpha,
            max_document_bytes=self.max_document_bytes,
        )


def store_of(
    path: Path, stores: Mapping[Path, StoreOptions], python: Path
) -> tuple[StoreOptions | None, str]:
    """Returns a file's options for the stored context, or why it has none and what to change."""
    store = stores.get(path.resolve())
    if store is None:
        line = f"context = {json.dumps([str(path)], ensure_ascii=False)}"
        return None, (
            "To let this file read and change what is stored, write "
            f"{line} under [functions] in the settings."
        )
    if python != Path(sys.executable):
        return None, (
            "Stored context needs the server's own interpreter: leave out the dependencies and the "
            "version of Python in the `# /// script` block, or move the function into another file."
        )
    return store, ""

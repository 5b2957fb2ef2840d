"""The models of the package `fastembed`: ONNX on the CPU, downloaded on first use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.index.embedders.loading import FirstUse, failures_of, import_extra
from storage.index.embedders.prefixes import Prefixes
from storage.index.embedders.protocol import DEFAULT_FLOOR
from storage.index.embedders.unit import unit_rows

if TYPE_CHECKING:
    from storage.index.embedders.protocol import Vectors

__all__ = ["FastEmbedEmbedder"]

NAME = "fastembed"
DEFAULT_MODEL = "BAAI/bge-small-en-v1.5"

BATCH_SIZE = 8
"""Texts a run of the model: it pads a batch to its longest text."""


class FastEmbedEmbedder:
    """One of the models that `fastembed.TextEmbedding.list_supported_models()` names.

    Args:
        model: Its name there; empty means BAAI/bge-small-en-v1.5.
        folder: Where its files lie; without it they are downloaded.
        prefixes: What it reads before a text; fastembed itself adds none.
        cjk: Whether it reads Chinese, Japanese and Korean.
        floor: Cosine below which texts have nothing to do with each other.
    """

    def __init__(
        self,
        model: str = "",
        *,
        folder: Path | None = None,
        prefixes: Prefixes = Prefixes(),  # noqa: B008  # it cannot be changed
        cjk: bool = True,
        floor: float = DEFAULT_FLOOR,
    ) -> None:
        name = model or DEFAULT_MODEL
        self.model_id = f"{NAME}:{name}{prefixes}"
        self.cjk = cjk
        self.floor = floor
        self._prefixes = prefixes
        self._model = FirstUse(lambda: _load(name, folder), f"fastembed's model {name!r}")

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text, float32, unit length.

        Raises:
            StorageUnavailableError: If the package is missing or its model cannot be loaded.
        """
        return self._embed(self._prefixes.of_passages(texts))

    def embed_query(self, text: str) -> Vectors:
        """One vector, float32, unit length.

        Raises:
            StorageUnavailableError: If the package is missing or its model cannot be loaded.
        """
        vector: Vectors = self._embed([self._prefixes.of_query(text)])[0]
        return vector

    def _embed(self, texts: list[str]) -> Vectors:
        with failures_of(self.model_id):
            rows = list(self._model().embed(texts, batch_size=BATCH_SIZE))
        return unit_rows(rows, len(texts), self.model_id)


def _load(name: str, folder: Path | None) -> Any:
    library = import_extra("fastembed", NAME)
    if folder is None:
        return library.TextEmbedding(name)
    return library.TextEmbedding(name, specific_model_path=str(folder))

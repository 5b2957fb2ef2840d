"""The models of the package `sentence-transformers`, by PyTorch."""

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

__all__ = ["SentenceTransformersEmbedder"]

NAME = "sentence-transformers"
DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2"

BATCH_SIZE = 8
"""Texts a run of the model: it pads a batch to its longest text."""


class SentenceTransformersEmbedder:
    """A model of the hub or of a folder; it runs on the device that PyTorch finds best.

    Args:
        model: Its name on the hub; empty means sentence-transformers/all-MiniLM-L6-v2.
        folder: Where its files lie; without it they are downloaded.
        dimensions: Length to which its vectors are cut, for models made for that; 0 cuts nothing.
        prefixes: What it reads before a text; empty ones leave the model its own prompts.
        cjk: Whether it reads Chinese, Japanese and Korean.
        floor: Cosine below which texts have nothing to do with each other.
    """

    def __init__(  # noqa: PLR0913  # what can be set of a model
        self,
        model: str = "",
        *,
        folder: Path | None = None,
        dimensions: int = 0,
        prefixes: Prefixes = Prefixes(),  # noqa: B008  # it cannot be changed
        cjk: bool = True,
        floor: float = DEFAULT_FLOOR,
    ) -> None:
        name = model or DEFAULT_MODEL
        cut = f"/{dimensions}" if dimensions else ""
        self.model_id = f"{NAME}:{name}{cut}{prefixes}"
        self.cjk = cjk
        self.floor = floor
        self._prefixes = prefixes
        self._model = FirstUse(
            lambda: _load(str(folder or name), dimensions or None),
            f"sentence-transformers' model {name!r}",
        )

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text, float32, unit length.

        Raises:
            StorageUnavailableError: If the package is missing or its model cannot be loaded.
        """
        return self._embed("encode_document", list(texts), self._prefixes.passage)

    def embed_query(self, text: str) -> Vectors:
        """One vector, float32, unit length.

        Raises:
            StorageUnavailableError: If the package is missing or its model cannot be loaded.
        """
        vector: Vectors = self._embed("encode_query", [text], self._prefixes.query)[0]
        return vector

    def _embed(self, method: str, texts: list[str], prefix: str) -> Vectors:
        with failures_of(self.model_id):
            rows = getattr(self._model(), method)(
                texts, prompt=prefix or None, batch_size=BATCH_SIZE, show_progress_bar=False
            )
        return unit_rows(rows, len(texts), self.model_id)


def _load(source: str, dimensions: int | None) -> Any:
    library = import_extra("sentence_transformers", NAME)
    return library.SentenceTransformer(source, truncate_dim=dimensions)

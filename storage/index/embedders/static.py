"""Static embeddings: one vector per token, from a table; thousands of texts per second."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.index.embedders.base import LazyLoader, unit_rows
from storage.index.embedders.bundled import load_tokenizer, read_bundled

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors

TABLE_FILE = "static_table.npy"
TABLE_SHA256 = "e61ae8f3295d1a033863bb6eb4aa8121c76ba041b9de43daefef255eb598c89f"
STATIC_TOKENIZER_FILE = "static_tokenizer.json"
STATIC_TOKENIZER_SHA256 = "96b2cb654e53218d1a430561f234b78015c767875e421f2c994abd40e37169a0"
MAX_TOKENS = 512  # the tokens read of a text
DIMENSIONS = 256


class StaticEmbedder:
    """WordLlama's table of 32,000 tokens: 256 dimensions, English, the mean of a text's tokens.

    The table and its tokenizer are built by `assets/make_static.py`. They are checked against
    their SHA-256 and loaded on first use, once per process. Can be shared between threads.
    """

    model_id = "wordllama-l2-supercat-256"
    cjk = False
    floor = 0.25

    def __init__(self, folder: Path = Path(__file__).parent) -> None:
        self._model = _model_in(folder)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text, float32, unit length; zeros for a text without any token."""
        import numpy as np

        tokenizer, table = self._model()
        encodings = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        rows = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        for row, encoding in zip(rows, encodings, strict=True):
            if encoding.ids:
                row[:] = table[encoding.ids].mean(axis=0, dtype=np.float32)
        return unit_rows(rows, len(texts), self.model_id)

    def embed_query(self, text: str) -> Vectors:
        """Returns one vector, float32, unit length."""
        vector: Vectors = self.embed_passages([text])[0]
        return vector

    def embed_spans(self, text: str, spans: Sequence[tuple[int, int]]) -> Vectors:
        """Returns one row for a text, then one for each span of its characters."""
        return self.embed_passages([text, *(text[start:end] for start, end in spans)])


@cache
def _model_in(folder: Path) -> LazyLoader[tuple[Any, Any]]:
    return LazyLoader(partial(_load, folder), "The static embedder")


def _load(folder: Path) -> tuple[Any, Any]:
    import numpy as np

    table = read_bundled(folder / TABLE_FILE, TABLE_SHA256, "table of static embeddings")
    tokenizer = load_tokenizer(folder, MAX_TOKENS, STATIC_TOKENIZER_FILE, STATIC_TOKENIZER_SHA256)
    return tokenizer, np.load(io.BytesIO(table))

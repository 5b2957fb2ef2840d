"""The bundled MiniLM, which runs on the CPU and downloads nothing."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.index.embedders.base import DEFAULT_FLOOR, LazyLoader
from storage.index.embedders.bundled import load_session, load_tokenizer, run_each

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors

MODEL_FILE = "minilm.onnx"
MODEL_SHA256 = "f9d9b7e8871cca2245408d14240f33be51441cdffcb311ee544ae976037002a7"
MAX_TOKENS = 256  # the tokens the model was trained on; later ones are cut
MAX_QUERY_TOKENS = 128  # the tokens read of a text with spans, because a search waits for it
DIMENSIONS = 384


class MiniLMEmbedder:
    """all-MiniLM-L6-v2 as int8 ONNX: 384 dimensions, English, mean pooling, no prefixes.

    Each text is run on its own, so that its vector does not depend on the batch. Several run in
    parallel, each on one processor, and queries go before waiting passages. The model and its
    tokenizer are built by `assets/make_minilm.py`. They are checked against their SHA-256 and
    loaded on first use, once per process. Can be shared between threads.
    """

    model_id = "all-MiniLM-L6-v2-onnx-int8-per-channel"
    cjk = False
    floor = DEFAULT_FLOOR

    def __init__(self, folder: Path = Path(__file__).parent) -> None:
        self._model = _model_in(folder)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text, float32, unit length."""
        return self._embed(texts, in_background=True)

    def embed_query(self, text: str) -> Vectors:
        """Returns one vector, float32, unit length."""
        vector: Vectors = self._embed([text], in_background=False)[0]
        return vector

    def _embed(self, texts: Sequence[str], *, in_background: bool) -> Vectors:
        import numpy as np

        tokenizer, session = self._model()
        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)

        def embed(row: int) -> None:
            vectors[row] = _states(session, encodings[row].ids).mean(axis=0)

        encodings = tokenizer.encode_batch(list(texts))
        longest_first = sorted(range(len(texts)), key=lambda row: -len(encodings[row].ids))
        run_each(embed, longest_first, in_background=in_background)
        return _unit(vectors)

    def embed_spans(self, text: str, spans: Sequence[tuple[int, int]]) -> Vectors:
        """Returns one row for a text, then one for each span of its characters, in one run.

        A span's vector is the mean of its tokens' states within the whole text: "late chunking"
        (Günther et al., 2024, https://arxiv.org/abs/2409.04701). A span beyond the tokens that are
        read has the vector of the whole.
        """
        import numpy as np

        tokenizer, session = self._model()
        encoding = tokenizer.encode(text)
        count = min(len(encoding.ids), MAX_QUERY_TOKENS)
        ids = [*encoding.ids[: count - 1], encoding.ids[-1]]  # the last one ends a text
        offsets = np.array(encoding.offsets[: count - 1])
        found: list[Any] = []
        run_each(lambda _: found.append(_states(session, ids)), [0])
        states = found[0]
        rows = [states.mean(axis=0)]
        for start, end in spans:
            inside = (offsets[:, 0] >= start) & (offsets[:, 1] <= end) & (offsets[:, 1] > 0)
            own = states[:-1][inside]
            rows.append(own.mean(axis=0) if len(own) else rows[0])
        return _unit(np.stack(rows))


def _states(session: Any, token_ids: list[int]) -> Any:
    import numpy as np

    return session.run(None, {"input_ids": np.array([token_ids], dtype=np.int64)})[0][0]


def _unit(rows: Any) -> Vectors:
    import numpy as np

    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


@cache
def _model_in(folder: Path) -> LazyLoader[tuple[Any, Any]]:
    return LazyLoader(partial(_load, folder), "The bundled embedder")


def _load(folder: Path) -> tuple[Any, Any]:
    return load_tokenizer(folder, MAX_TOKENS), load_session(folder / MODEL_FILE, MODEL_SHA256)

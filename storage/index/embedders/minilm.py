"""The bundled MiniLM: on the CPU, with nothing downloaded."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.errors import StorageUnavailableError
from storage.index.embedders.base import DEFAULT_FLOOR, LazyLoader

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors

__all__ = ["MODEL_FILE", "TOKENIZER_FILE", "MiniLMEmbedder"]

MODEL_FILE = "minilm.onnx"
MODEL_SHA256 = "f9d9b7e8871cca2245408d14240f33be51441cdffcb311ee544ae976037002a7"
TOKENIZER_FILE = "minilm_tokenizer.json"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

MAX_TOKENS = 256
"""What the model was trained to read; later tokens are cut."""

MAX_QUERY_TOKENS = 128
"""What is read of a text whose spans are asked for: a search waits for it."""

DIMENSIONS = 384

_REINSTALL = "Reinstall Toolcrib."


class MiniLMEmbedder:
    """all-MiniLM-L6-v2 as int8 ONNX: 384 dimensions, English, mean pooling, no prefixes.

    A text is run by itself, so that its vector does not depend on its company, and several run at
    once, each on one processor. The model and its tokenizer, which `assets/make_minilm.py` makes,
    are checked against their SHA-256 and loaded on first use, once for all embedders of the
    process. Safe to share between threads.

    Args:
        folder: Where the files of both lie.
    """

    model_id = "all-MiniLM-L6-v2-onnx-int8-per-channel"
    cjk = False
    floor = DEFAULT_FLOOR

    def __init__(self, folder: Path = Path(__file__).parent) -> None:
        self._model = _model_in(folder)

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text, float32, unit length.

        Raises:
            StorageUnavailableError: If the model is missing or damaged.
        """
        import numpy as np

        tokenizer, session = self._model()
        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)

        def embed(row: int) -> None:
            vectors[row] = _states(session, encodings[row].ids).mean(axis=0)

        encodings = tokenizer.encode_batch(list(texts))
        longest_first = sorted(range(len(texts)), key=lambda row: -len(encodings[row].ids))
        if len(texts) == 1:
            embed(0)
        else:
            with ThreadPoolExecutor(_processors()) as pool:
                list(pool.map(embed, longest_first))
        return _unit(vectors)

    def embed_query(self, text: str) -> Vectors:
        """One vector, float32, unit length.

        Raises:
            StorageUnavailableError: If the model is missing or damaged.
        """
        vector: Vectors = self.embed_passages([text])[0]
        return vector

    def embed_spans(self, text: str, spans: Sequence[tuple[int, int]]) -> Vectors:
        """One row for a text, then one for each of some spans of its characters, in one run.

        A span's vector is the mean of its tokens as the model understood them within the whole:
        "late chunking" (Günther et al., 2024, https://arxiv.org/abs/2409.04701). A span that is
        not read any more has the vector of the whole.

        Raises:
            StorageUnavailableError: If the model is missing or damaged.
        """
        import numpy as np

        tokenizer, session = self._model()
        encoding = tokenizer.encode(text)
        count = min(len(encoding.ids), MAX_QUERY_TOKENS)
        ids = [*encoding.ids[: count - 1], encoding.ids[-1]]  # the last one ends a text
        offsets = np.array(encoding.offsets[: count - 1])
        states = _states(session, ids)
        rows = [states.mean(axis=0)]
        for start, end in spans:
            inside = (offsets[:, 0] >= start) & (offsets[:, 1] <= end) & (offsets[:, 1] > 0)
            own = states[:-1][inside]
            rows.append(own.mean(axis=0) if len(own) else rows[0])
        return _unit(np.stack(rows))


def _states(session: Any, token_ids: list[int]) -> Any:
    """What the model makes of each token of a text."""
    import numpy as np

    return session.run(None, {"input_ids": np.array([token_ids], dtype=np.int64)})[0][0]


def _processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _unit(rows: Any) -> Vectors:
    import numpy as np

    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


@cache
def _model_in(folder: Path) -> LazyLoader[tuple[Any, Any]]:
    return LazyLoader(partial(_load, folder), "The bundled embedder")


def _load(folder: Path) -> tuple[Any, Any]:
    import onnxruntime
    from tokenizers import Tokenizer

    try:
        tokenizer_json = (folder / TOKENIZER_FILE).read_bytes()
        model = (folder / MODEL_FILE).read_bytes()
    except OSError as error:
        raise StorageUnavailableError(
            f"The bundled embedder cannot be read: {error}.", suggestions=(_REINSTALL,)
        ) from error
    _check(tokenizer_json, TOKENIZER_SHA256, "tokenizer")
    _check(model, MODEL_SHA256, "model")
    tokenizer = Tokenizer.from_str(tokenizer_json.decode())
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # warnings about the machine are no business of the user's
    options.intra_op_num_threads = 1  # texts beside each other use processors better
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return tokenizer, session


def _check(data: bytes, sha256: str, what: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise StorageUnavailableError(
            f"The bundled embedder's {what} is damaged: its SHA-256 is {found}, not {sha256}.",
            suggestions=(_REINSTALL,),
        )

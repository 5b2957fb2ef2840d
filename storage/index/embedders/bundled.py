"""Loads, verifies and runs the bundled ONNX models on all processors."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, partial
from pathlib import Path
from typing import Any

from storage.errors import StorageUnavailableError
from storage.outbound import opt_out

TOKENIZER_FILE = "minilm_tokenizer.json"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
NICENESS = 5  # the niceness of threads that run models; at 10, searches wait long on busy machines
_REINSTALL = "Reinstall Toolcrib."


def load_session(file: Path, sha256: str) -> Any:
    """Loads a model that can be run by several threads."""
    opt_out()
    import onnxruntime

    onnxruntime.disable_telemetry_events()  # for a program that imported it before
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # hide warnings about the machine from the user
    options.intra_op_num_threads = 1  # parallel texts use the processors better
    model = read_bundled(file, sha256, "model")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def load_tokenizer(
    folder: Path, max_tokens: int, file: str = TOKENIZER_FILE, sha256: str = TOKENIZER_SHA256
) -> Any:
    """Loads a tokenizer that cuts later tokens; by default that of all the ONNX models."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(read_bundled(folder / file, sha256, "tokenizer").decode())
    tokenizer.enable_truncation(max_tokens)
    tokenizer.no_padding()
    return tokenizer


def read_bundled(file: Path, sha256: str, what: str) -> bytes:
    """Reads a bundled file and verifies its hash."""
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


def run_each(
    run: Callable[[int], None], rows: Iterable[int], *, in_background: bool = False
) -> None:
    """Runs a model for each row, in that order, in threads shared by all models of the process.

    Rows of searches go before those that run `in_background`.
    """
    _shared_threads().run([partial(run, row) for row in rows], in_background=in_background)


class InferenceThreads:
    """Runs models in a few shared threads; searches go before background embedding.

    If every search had its own threads, they would leave no processor to other calls.
    """

    def __init__(self, count: int) -> None:
        by_thread = sys.platform == "linux"  # elsewhere, niceness is per process
        self._threads = ThreadPoolExecutor(
            count,
            thread_name_prefix="toolcrib-inference",
            initializer=partial(os.nice, NICENESS) if by_thread else None,
        )
        self._turn = threading.Lock()
        self._awaited: deque[tuple[Future[None], Callable[[], None]]] = deque()
        self._background: deque[tuple[Future[None], Callable[[], None]]] = deque()

    def run(self, tasks: Iterable[Callable[[], None]], *, in_background: bool = False) -> None:
        """Runs tasks in parallel and waits for all of them."""
        queue = self._background if in_background else self._awaited
        done: list[Future[None]] = []
        for task in tasks:
            done.append(Future())
            queue.append((done[-1], task))
            self._threads.submit(self._run_next)
        wait(done)
        for each in done:
            each.result()

    def _run_next(self) -> None:
        """Runs the first waiting task; it is submitted once per task."""
        with self._turn:
            done, task = (self._awaited or self._background).popleft()
        try:
            task()
        except BaseException as error:  # noqa: BLE001  # re-raised for the caller
            done.set_exception(error)
        else:
            done.set_result(None)


def processors() -> int:
    """Returns the number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _shared_threads() -> InferenceThreads:
    return InferenceThreads(processors())

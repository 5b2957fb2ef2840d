"""The models that Toolcrib brings along, as ONNX: loaded, checked, and run on every processor."""

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

NICENESS = 5
"""What the threads that run models leave to others; at 10, searches wait long on busy machines."""

_REINSTALL = "Reinstall Toolcrib."


def load_session(file: Path, sha256: str) -> Any:
    """A model, to be run by one thread at a time or by many.

    Args:
        file: Where it lies.
        sha256: What its bytes have to give.
    """
    opt_out()
    import onnxruntime

    onnxruntime.disable_telemetry_events()  # of a program that had imported it before
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # warnings about the machine are no business of the user's
    options.intra_op_num_threads = 1  # texts beside each other use processors better
    model = read_bundled(file, sha256, "model")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def load_tokenizer(
    folder: Path, max_tokens: int, file: str = TOKENIZER_FILE, sha256: str = TOKENIZER_SHA256
) -> Any:
    """Returns a tokenizer, which cuts later tokens; by default that of all the ONNX models."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(read_bundled(folder / file, sha256, "tokenizer").decode())
    tokenizer.enable_truncation(max_tokens)
    tokenizer.no_padding()
    return tokenizer


def read_bundled(file: Path, sha256: str, what: str) -> bytes:
    """Returns a file that Toolcrib brings along."""
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
    """Runs a model for each of some rows, in the threads that all models of the process share.

    Args:
        run: Runs it for a row, on one processor.
        rows: In the order in which they are begun.
        in_background: Whether rows of searches go before these.
    """
    _shared_threads().run([partial(run, row) for row in rows], in_background=in_background)


class InferenceThreads:
    """Runs models in a few threads: searches before what is embedded in the background.

    If every search had threads of its own, they would leave no processor to other calls.

    Args:
        count: How many threads there are.
    """

    def __init__(self, count: int) -> None:
        by_thread = sys.platform == "linux"  # elsewhere, all the process would step back
        self._threads = ThreadPoolExecutor(
            count,
            thread_name_prefix="toolcrib-inference",
            initializer=partial(os.nice, NICENESS) if by_thread else None,
        )
        self._turn = threading.Lock()
        self._awaited: deque[tuple[Future[None], Callable[[], None]]] = deque()
        self._background: deque[tuple[Future[None], Callable[[], None]]] = deque()

    def run(self, tasks: Iterable[Callable[[], None]], *, in_background: bool = False) -> None:
        """Runs some tasks, several at once, and waits for all of them."""
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
        """Runs one task, whichever is first by now: there is one for each call of this."""
        with self._turn:
            done, task = (self._awaited or self._background).popleft()
        try:
            task()
        except BaseException as error:  # noqa: BLE001  # the caller gets it, whatever it is
            done.set_exception(error)
        else:
            done.set_result(None)


def processors() -> int:
    """Returns how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _shared_threads() -> InferenceThreads:
    return InferenceThreads(processors())

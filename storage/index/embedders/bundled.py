"""The bundled embedders, which run on the CPU and download nothing, and their shared threads."""

from __future__ import annotations

import ctypes
import hashlib
import io
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from storage.errors import StorageError, StorageUnavailableError
from storage.index.embedders.base import DEFAULT_FLOOR, unit_rows
from storage.outbound import opt_out
from storage.tokenize import SPACELESS_LETTERS, is_spaceless

if TYPE_CHECKING:
    from storage.index.embedders.base import Vectors


TOKENIZER_FILE = "minilm_tokenizer.json"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
IDLE_SECONDS = 300.0  # seconds without use after which a model is unloaded
LOAD_SECONDS = 15.0  # seconds a search waits for a model to load before it continues without it
NICENESS = 5  # the niceness of threads that run models; at 10, searches wait long on busy machines
_REINSTALL = "Reinstall Toolcrib."
T = TypeVar("T")


@contextmanager
def failures_of(what: str) -> Iterator[None]:
    """Converts any exception of a library to a StorageUnavailableError that names the source."""
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        raise StorageUnavailableError(f"{what} fails: {error}") from error


class LazyLoader(Generic[T]):
    """A model or client that is loaded on first use, once for all threads.

    It is loaded in its own thread: a model may have to be downloaded first, and a search that has
    waited long enough uses keywords meanwhile. After a failure the next caller tries again. A model
    that nothing has used for `IDLE_SECONDS` is unloaded, and loaded again when it is needed.
    """

    def __init__(self, load: Callable[[], T], name: str) -> None:
        self._load = load
        self._name = name
        self._turn = threading.Lock()
        self._loaded: Future[T] | None = None
        self._used = 0.0

    def __call__(self) -> T:
        """Returns the model."""
        with self._turn:
            self._used = time.monotonic()
            if self._loaded is None:
                self._loaded = Future()
                threading.Thread(target=self._fill, args=([self._loaded],), daemon=True).start()
            loaded = self._loaded
        with failures_of(self._name):
            try:
                return loaded.result(LOAD_SECONDS)
            except TimeoutError:
                if loaded.done():  # raised by the loader itself
                    raise
        raise StorageUnavailableError(
            f"{self._name} is still being loaded.",
            suggestions=("It is used once it is loaded; until then, searches go by words.",),
        )

    def _fill(self, made: list[Future[T]]) -> None:
        loaded = made.pop()  # a thread keeps its arguments, and this one would keep the model
        try:
            loaded.set_result(self._load())
        except BaseException as error:  # noqa: BLE001  # re-raised for every caller
            with self._turn:
                self._loaded = None
            loaded.set_exception(error)
            return
        del loaded
        while True:
            time.sleep(max(0.0, self._used + IDLE_SECONDS - time.monotonic()))
            with self._turn:
                if time.monotonic() - self._used >= IDLE_SECONDS:
                    self._loaded = None
                    break
        with suppress(AttributeError, OSError):  # other systems than glibc's return it themselves
            ctypes.CDLL(None).malloc_trim(0)


@cache
def shared_model(
    load: Callable[[Path], tuple[Any, Any]], folder: Path, name: str
) -> LazyLoader[tuple[Any, Any]]:
    """Returns the loader of a model and its tokenizer in a folder, one for the whole process."""
    return LazyLoader(partial(load, folder), name)


def load_session(file: Path, sha256: str) -> Any:
    """Loads a model that can be run by several threads."""
    opt_out()
    import numpy as np  # noqa: F401  # onnxruntime imports its parts first: with another thread, it fails
    import onnxruntime

    onnxruntime.disable_telemetry_events()  # for a program that imported it before
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # hide warnings about the machine from the user
    options.intra_op_num_threads = 1  # parallel texts use the processors better
    check_bundled(file, sha256, "model")
    # By its path, which takes less memory than from bytes. The fused normalization is slow: without
    # it, a run takes three quarters of the time.
    return onnxruntime.InferenceSession(
        file,
        options,
        providers=["CPUExecutionProvider"],
        disabled_optimizers=["SkipLayerNormFusion"],
    )


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
    """Verifies the hash of a bundled file and reads it."""
    check_bundled(file, sha256, what)
    return file.read_bytes()


def check_bundled(file: Path, sha256: str, what: str) -> None:
    """Raises if a bundled file does not have its hash."""
    try:
        with file.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise StorageUnavailableError(
            f"The bundled {what} cannot be read: {error}.", suggestions=(_REINSTALL,)
        ) from error
    if found != sha256:
        raise StorageUnavailableError(
            f"The bundled {what} is damaged: its SHA-256 is {found}, not {sha256}.",
            suggestions=(_REINSTALL,),
        )


def run_each(
    run: Callable[[int], None], rows: Iterable[int], *, in_background: bool = False
) -> None:
    """Runs a model for each row, in that order, in threads shared by all models of the process.

    Rows of searches go before those that run `in_background`. A single row goes first: one call
    waits for it, such as `remember`, and makes others wait.
    """
    tasks = [partial(run, row) for row in rows]
    _shared_threads().run(tasks, in_background=in_background, first=len(tasks) == 1)


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

    def run(
        self,
        tasks: Iterable[Callable[[], None]],
        *,
        in_background: bool = False,
        first: bool = False,
    ) -> None:
        """Runs tasks in parallel and waits for all of them."""
        queue = self._background if in_background else self._awaited
        enqueue = self._awaited.appendleft if first else queue.append
        done: list[Future[None]] = []
        for task in tasks:
            done.append(Future())
            enqueue((done[-1], task))
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


MODEL_FILE = "minilm.onnx"
MODEL_SHA256 = "f9d9b7e8871cca2245408d14240f33be51441cdffcb311ee544ae976037002a7"
MAX_TOKENS = 256  # the tokens the model was trained on; later ones are cut
MAX_QUERY_TOKENS = 128  # the tokens read of a text with spans, because a search waits for it
DIMENSIONS = 384
# Maximum tokens per word of an English text: 1.0 to 1.4, compared with 1.5 to 2.6 in German.
PIECES_A_WORD = 1.45


class MiniLMEmbedder:
    """all-MiniLM-L6-v2 as int8 ONNX: 384 dimensions, English, mean pooling, no prefixes.

    Each text is run on its own, so that its vector does not depend on the batch. Several run in
    parallel, each on one processor, and queries go before waiting passages. The model and its
    tokenizer are built by `assets/make_minilm.py`. They are checked against their SHA-256 and
    loaded on first use, once per process. Can be shared between threads.
    """

    model_id = "all-MiniLM-L6-v2-onnx-int8-per-channel"
    unread = SPACELESS_LETTERS
    floor = DEFAULT_FLOOR

    def __init__(self, folder: Path = Path(__file__).parent) -> None:
        self._model = shared_model(_load_minilm, folder, "The bundled embedder")

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text, float32, unit length."""
        return self._embed(texts, in_background=True)

    def embed_query(self, text: str) -> Vectors:
        """Returns one vector, float32, unit length."""
        vector: Vectors = self._embed([text], in_background=False)[0]
        return vector

    def _embed(self, texts: Sequence[str], *, in_background: bool) -> Vectors:
        tokenizer, session = self._model()
        encodings = tokenizer.encode_batch(list(texts))
        return embed_each(session, [each.ids for each in encodings], in_background)

    def is_in_english(self, text: str) -> bool:
        """Returns whether words are mostly single tokens."""
        words = self._model()[0].encode(text, add_special_tokens=False).word_ids
        return not is_spaceless(text) and len(words) <= PIECES_A_WORD * len(set(words))

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


def embed_each(session: Any, texts: Sequence[list[int]], in_background: bool) -> Vectors:
    """Returns one row per text, given as the ids of its tokens: the mean of their states."""
    import numpy as np

    vectors = np.empty((len(texts), DIMENSIONS), dtype=np.float32)

    def embed(row: int) -> None:
        vectors[row] = _states(session, texts[row]).mean(axis=0)

    longest_first = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
    run_each(embed, longest_first, in_background=in_background)
    return _unit(vectors)


def _states(session: Any, token_ids: list[int]) -> Any:
    import numpy as np

    return session.run(None, {"input_ids": np.array([token_ids], dtype=np.int64)})[0][0]


def _unit(rows: Any) -> Vectors:
    import numpy as np

    unit: Vectors = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _load_minilm(folder: Path) -> tuple[Any, Any]:
    return load_tokenizer(folder, MAX_TOKENS), load_session(folder / MODEL_FILE, MODEL_SHA256)


TABLE_FILE = "static_table.npy"
TABLE_SHA256 = "846e52801009b9cf33cf3c2808ede0a79f1fc57502f09e8301c1095d175334fc"
STATIC_TOKENIZER_FILE = "static_tokenizer.json"
STATIC_TOKENIZER_SHA256 = "96b2cb654e53218d1a430561f234b78015c767875e421f2c994abd40e37169a0"
STATIC_MAX_TOKENS = 512  # the tokens read of a text
STATIC_DIMENSIONS = 256


class StaticEmbedder:
    """WordLlama's table of 32,000 tokens: 256 dimensions, English, the mean of a text's tokens.

    The table and its tokenizer are built by `assets/make_static.py`. They are checked against
    their SHA-256 and loaded on first use, once per process. Can be shared between threads.
    """

    model_id = "wordllama-l2-supercat-256"
    unread = SPACELESS_LETTERS
    floor = 0.25

    def __init__(self, folder: Path = Path(__file__).parent) -> None:
        self._model = shared_model(_load_static, folder, "The static embedder")

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text, float32, unit length; zeros for a text without any token."""
        import numpy as np

        tokenizer, table = self._model()
        encodings = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        rows = np.zeros((len(texts), STATIC_DIMENSIONS), dtype=np.float32)
        for row, encoding in zip(rows, encodings, strict=True):
            if encoding.ids:
                read = table[encoding.ids]
                row[:] = read["scale"] @ read["steps"].astype(np.float32) / len(read)
        return unit_rows(rows, len(texts), self.model_id)

    def embed_query(self, text: str) -> Vectors:
        """Returns one vector, float32, unit length."""
        vector: Vectors = self.embed_passages([text])[0]
        return vector

    def embed_spans(self, text: str, spans: Sequence[tuple[int, int]]) -> Vectors:
        """Returns one row for a text, then one for each span of its characters."""
        return self.embed_passages([text, *(text[start:end] for start, end in spans)])


def _load_static(folder: Path) -> tuple[Any, Any]:
    import numpy as np

    table = read_bundled(folder / TABLE_FILE, TABLE_SHA256, "table of static embeddings")
    tokenizer = load_tokenizer(
        folder, STATIC_MAX_TOKENS, STATIC_TOKENIZER_FILE, STATIC_TOKENIZER_SHA256
    )
    return tokenizer, np.load(io.BytesIO(table))

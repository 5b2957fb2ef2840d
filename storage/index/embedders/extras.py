"""Libraries that only some embedders need, and the models that take their time to come."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from storage.errors import StorageError, StorageUnavailableError

__all__ = ["FirstUse", "failures_of", "import_extra"]

PATIENCE_SECONDS = 15.0
"""How long a search waits for a model that is being loaded before it goes on without."""

T = TypeVar("T")


def import_extra(module: str, extra: str) -> Any:  # noqa: ANN401  # a library without types
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

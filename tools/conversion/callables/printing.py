"""What a function prints, which is the result of a command of a terminal."""

from __future__ import annotations

import functools
import inspect
import io
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TextIO

CAPTURE: ContextVar[TextIO | None] = ContextVar("capture", default=None)
"""Where what is printed in this call goes; None where it goes where it always did."""


class _Stdout:
    """Python's stdout, but for calls whose own is captured."""

    def __init__(self, own: Any) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(CAPTURE.get() or self._own, name)


@contextmanager
def captured() -> Iterator[Callable[[], str]]:
    """Keeps what is printed in the block, in this call alone; yields what tells it so far."""
    if not isinstance(sys.stdout, _Stdout):  # it stays: other calls may have begun meanwhile
        sys.stdout = _Stdout(sys.stdout)
    kept = io.BytesIO()
    stream = io.TextIOWrapper(kept, encoding="utf-8", newline="\n", write_through=True)
    token = CAPTURE.set(stream)
    try:
        yield lambda: kept.getvalue().decode(errors="replace").rstrip("\n")
    finally:
        CAPTURE.reset(token)
        stream.detach()


def printing(function: Callable[..., Any], signature: inspect.Signature) -> Callable[..., str]:
    """Returns a function that takes the same, by its signature, and returns what it prints."""

    def run(*args: Any, **kwargs: Any) -> str:
        with captured() as printed:
            function(*args, **kwargs)
            return printed()

    functools.update_wrapper(run, function)
    vars(run)["__signature__"] = signature.replace(return_annotation=str)
    return run

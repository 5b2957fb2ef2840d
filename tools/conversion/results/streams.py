"""Iterators of every kind: each item is reported as it comes, and all are collected."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from io import IOBase
from typing import Any

import anyio.from_thread
import anyio.lowlevel
from pydantic_core import to_json

from tools.conversion.results.attachments import is_shown
from tools.conversion.results.plain import MOST_ITEMS, plain
from tools.core.context import ProgressReporter
from tools.core.errors import InternalError

__all__ = ["Collected", "collect", "collect_async", "is_async_stream", "is_stream"]

BRIEF = 200
"""Characters of an item that are reported."""


@dataclass(frozen=True, slots=True)
class Collected:
    """All that an iterator gave.

    Attributes:
        items: What it yielded.
        returned: What it returned at its end, None where that was nothing.
    """

    items: list[Any]
    returned: Any = None


def is_stream(value: object) -> bool:
    """Whether a value is an iterator; an open file is one too, but means something else."""
    return hasattr(type(value), "__next__") and not isinstance(value, IOBase)


def is_async_stream(value: object) -> bool:
    """Whether a value is iterated over with `async for`."""
    return hasattr(type(value), "__aiter__")


def collect(values: Iterator[Any], report: ProgressReporter) -> Collected:
    """Takes all of an iterator; to be called in a worker thread of anyio's.

    Before each item it is asked whether the call was cancelled. However it ends, the iterator is
    closed, so that its `finally` blocks run.

    Args:
        values: The iterator.
        report: Reports (done, total, message) to the caller.

    Raises:
        InternalError: If there are more than MOST_ITEMS items.
    """
    items: list[Any] = []
    try:
        while True:
            anyio.from_thread.check_cancelled()
            try:
                item = next(values)
            except StopIteration as end:
                return Collected(items, end.value)
            _take(item, items)
            anyio.from_thread.run(report, len(items), None, _brief(item))
    finally:
        close = getattr(values, "close", None)
        if callable(close):
            close()


async def collect_async(values: AsyncIterable[Any], report: ProgressReporter) -> Collected:
    """Takes all of an asynchronous iterator, as `collect` does.

    Args:
        values: The iterator, or what gives one.
        report: Reports (done, total, message) to the caller.

    Raises:
        InternalError: If there are more than MOST_ITEMS items.
    """
    items: list[Any] = []
    iterator = aiter(values)
    try:
        async for item in iterator:
            _take(item, items)
            await report(len(items), None, _brief(item))
            # Neither the iterator nor the report may ever wait, and others want their turn.
            await anyio.lowlevel.checkpoint()
    finally:
        close: Callable[[], Coroutine[Any, Any, None]] | None = getattr(iterator, "aclose", None)
        if close is not None:
            await close()
    return Collected(items)


def _take(item: object, items: list[Any]) -> None:
    if len(items) == MOST_ITEMS:
        raise InternalError(f"The tool gave {MOST_ITEMS:,} items and did not end; it was stopped.")
    items.append(item)


def _brief(item: Any) -> str:
    """An item in few words; an image is not drawn only to be counted."""
    to_text = getattr(type(item), "to_text", None)
    if is_shown(type(item)):
        return type(item).__name__
    if isinstance(item, str):
        text = item
    elif callable(to_text):
        text = str(to_text(item))
    else:
        text = to_json(plain(item)).decode()
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 1]}…"

"""Frames and series of pandas as builtin values, without importing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tools.conversion.errors import UnsendableError

__all__ = ["is_default", "labelled", "records"]

Column = Callable[[Any], list[Any]]
"""Makes a list of a series."""


def records(
    frame: Any,
    column: Column,
    label: Callable[[Any], Any] = lambda name: name,
) -> list[dict[Any, Any]]:
    """A frame as a list of objects; an index other than the default one comes first in each.

    Args:
        frame: The frame.
        column: Makes a list of each column.
        label: Makes a key of each column's name.

    Raises:
        UnsendableError: If two columns have the same name.
    """
    names = [label(name) for name in frame.columns]
    columns = [column(frame.iloc[:, place]) for place in range(len(names))]
    if not is_default(frame.index):
        level_names = _level_names(frame.index, names)
        name = level_names if frame.index.nlevels > 1 else level_names[0]
        levels = frame.index.to_frame(index=False, name=name)
        names = [*map(label, levels.columns), *names]
        columns = [*(column(levels.iloc[:, at]) for at in range(levels.shape[1])), *columns]
    if len(set(names)) < len(names):
        raise UnsendableError("a DataFrame in which two columns have the same name")
    if not columns:
        return [{} for _ in range(len(frame))]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def labelled(series: Any, column: Column) -> Any:
    """A series as an object by label, or where a label occurs twice as a list of such pairs.

    Args:
        series: The series.
        column: Makes a list of it.
    """
    labels, values = series.index.to_list(), column(series)
    if series.index.is_unique:
        return dict(zip(labels, values, strict=True))
    pairs = zip(labels, values, strict=True)
    return [{"index": label, "value": value} for label, value in pairs]


def is_default(index: Any) -> bool:
    """Whether an index only counts the rows."""
    if index is None:
        return True
    is_range = type(index).__name__ == "RangeIndex" and index.name is None
    return is_range and (index.start, index.step) == (0, 1)


def _level_names(index: Any, taken: list[Any]) -> list[Any]:
    """What the columns are called that an index becomes, none like a column that is there."""
    unnamed = ["index"] if index.nlevels == 1 else [f"level_{at}" for at in range(index.nlevels)]
    given = zip(index.names, unnamed, strict=True)
    names = [name if named is None else named for named, name in given]
    return [f"index_{name}" if name in taken else name for name in names]

"""What a run keeps between two operators, so that it can go on from there when it was ended.

The server takes it from the run's directory, and puts it there for the next run: rows as JSON, or
as Arrow where `dj-process` keeps them, and nothing that is more than data.
"""

from __future__ import annotations

import base64
import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Any

from .agreed import ROWS, TOLD
from .reading import Columns, rows_of

_BATCH = 1_000
"""Rows of a line."""

_SCALARS = {str, int, float, bool, type(None)}
_NUMPY = {"float64", "int64", "bool", "bool_"}
"""Types whose values are written like those of Python's own."""

_MARK = "\0"
"""The key of an object that stands for a value which JSON does not have."""


class _UnkeepableError(ValueError):
    """A value that would not be the same when it is read again."""


class Kept:
    """What an earlier run has left."""

    def __init__(self, directory: Path, told: dict[str, Any]) -> None:
        self.rows = directory / ROWS
        self.done = int(directory.name)
        self.steps: list[dict[str, Any]] = told["steps"]
        self.last = str(self.steps[-1]["operator"])
        self.rows_in = int(told["rows_in"])
        self.removed: list[str] = told.get("removed", [])
        self.gone: dict[int, str] = {
            number: name for name, numbers in told["gone"].items() for number in numbers
        }


class Keeper:
    """Keeps what a run has done, when that took long enough."""

    def __init__(self, directory: Path, after: float | None) -> None:
        # Seconds of work that are worth it, and so many again for each that keeping took.
        self._after = after
        self._directory = directory
        self._due = time.perf_counter() + (after or 0)

    def keep(self, columns: Columns, told: dict[str, Any]) -> None:
        """Keeps rows, unless a value of theirs could not be read again."""
        if self.keep_rows(told["done"], partial(_write, columns)):
            self.finish(told)

    @property
    def is_due(self) -> bool:
        """Whether it was worked for long enough."""
        return self._after is not None and time.perf_counter() >= self._due

    def keep_rows(self, done: int, write: Callable[[Path], object]) -> bool:
        """Writes the rows after so many operators, if it is time; returns whether it has."""
        if not self.is_due:
            return False
        started = time.perf_counter()
        try:
            write(self._part(done) / ROWS)
        except Exception:  # noqa: BLE001  # whatever it is, the run itself goes on
            self._after = None
            return False
        ended = time.perf_counter()
        self._due = ended + (self._after or 0) * max(ended - started, 1)
        return True

    def finish(self, told: dict[str, Any]) -> None:
        """Puts what is whole where the server takes it from, in the place of what was before."""
        with suppress(OSError):  # the run itself goes on
            part = self._part(told["done"])
            (part / TOLD).write_text(json.dumps(told), encoding="utf-8")
            before = [each for each in self._directory.iterdir() if each.name.isdecimal()]
            part.rename(self._directory / str(told["done"]))
            for each in before:
                shutil.rmtree(each)

    def options(self, kept: Kept | None) -> dict[str, Any]:
        """Returns what another process needs for doing the same."""
        return {
            "directory": str(self._directory),
            "after": self._after,
            "rows": None if kept is None else str(kept.rows),
            "done": 0 if kept is None else kept.done,
        }

    def _part(self, done: int) -> Path:
        """Where what is left after so many operators is, until it is whole."""
        part = self._directory / f"part-{done}"
        part.mkdir(parents=True, exist_ok=True)
        return part


def kept_in(directory: str | None) -> Kept | None:
    """Returns what is kept in a directory; None where that is nothing whole."""
    if directory is None:
        return None
    try:
        return Kept(Path(directory), json.loads((Path(directory) / TOLD).read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None


def columns_of(kept: Kept) -> Columns | None:
    """Returns the rows that are kept; None where they cannot be read."""
    import pyarrow as pa

    columns: Columns = {}
    try:
        with pa.input_stream(str(kept.rows), compression="zstd") as file:
            for line in BufferedReader(file, 1 << 20):
                batch = json.loads(line.decode("utf-8", "surrogatepass"), object_hook=_read)
                for name, values in batch.items():
                    columns.setdefault(name, []).extend(values)
    except (OSError, ValueError, AttributeError, TypeError, pa.ArrowException):
        return None
    return columns if len({len(values) for values in columns.values()}) == 1 else None


def _write(columns: Columns, path: Path) -> None:
    import pyarrow as pa

    with pa.output_stream(str(path), compression="zstd") as file:
        for batch in _batches(columns):
            line = json.dumps(batch, ensure_ascii=False)
            file.write(line.encode("utf-8", "surrogatepass") + b"\n")


def _batches(columns: Columns) -> Iterator[dict[str, list[Any]]]:
    for start in range(0, rows_of(columns), _BATCH) or (0,):
        yield {name: _as_json(values[start : start + _BATCH]) for name, values in columns.items()}


def _as_json(values: list[Any]) -> list[Any]:
    if set(map(type, values)) <= _SCALARS:
        return values
    return list(map(_said, values))


def _said(value: Any) -> Any:
    """A value as JSON has it."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is list:
        return list(map(_said, value))
    if kind is dict and _MARK not in value and all(type(key) is str for key in value):
        return {key: _said(each) for key, each in value.items()}
    if kind is bytes:
        return {_MARK: base64.b64encode(value).decode("ascii")}
    if kind is datetime and value.tzinfo is None:
        return {_MARK: None, "at": value.isoformat()}
    if kind.__module__ == "numpy" and kind.__name__ in _NUMPY:
        return value.item()
    raise _UnkeepableError(kind.__name__)


def _read(found: dict[str, Any]) -> Any:
    """What an object stands for."""
    if _MARK not in found:
        return found
    said = found[_MARK]
    return datetime.fromisoformat(found["at"]) if said is None else base64.b64decode(said)

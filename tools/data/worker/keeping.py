"""Keeps the rows between two operators, so that a run that was ended can continue from there.

The server takes it from the run's directory, and puts it there for the next run: rows as JSON, and
nothing that is more than data.
"""

from __future__ import annotations

import base64
import json
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from io import BufferedReader
from pathlib import Path
from typing import Any

from .agreed import ROWS, TOLD
from .reading import Columns, rows_of

_BATCH = 1_000  # rows of a line

_SCALARS = {str, int, float, bool, type(None)}
_NUMPY = {"float64", "int64", "bool", "bool_"}  # written like values of Python's own types

_MARK = "\0"
"""The key of an object that stands for a value which JSON does not have."""


class _UnkeepableError(ValueError):
    """A value that would not be the same when it is read again."""


@dataclass
class Kept:
    """The checkpoint of an earlier run."""

    columns: Columns
    done: int
    steps: list[dict[str, Any]]
    removed: list[str]
    gone: dict[int, str]
    last: str


class Keeper:
    """Keeps what a run has done, after so many seconds of work; None keeps nothing.

    Keeping costs time: so many more seconds pass for each that it took.
    """

    def __init__(self, directory: Path, after: float | None) -> None:
        self._directory = directory
        self._after = after
        self._due = time.perf_counter() + (after or 0)

    @property
    def is_due(self) -> bool:
        """Whether the run has worked for long enough."""
        return self._after is not None and time.perf_counter() >= self._due

    def keep(self, columns: Columns, told: dict[str, Any]) -> None:
        """Keeps rows instead of those before, unless a value of theirs could not be read again."""
        started = time.perf_counter()
        part = self._directory / f"part-{told['done']}"
        try:
            part.mkdir(parents=True, exist_ok=True)
            _write(columns, part / ROWS)
        except Exception:  # noqa: BLE001  # whatever it is, the run itself continues
            self._after = None
            return
        ended = time.perf_counter()
        self._due = ended + (self._after or 0) * max(ended - started, 1)
        with suppress(OSError):
            (part / TOLD).write_text(json.dumps(told), encoding="utf-8")
            before = [each for each in self._directory.iterdir() if each.name.isdecimal()]
            part.rename(self._directory / str(told["done"]))
            for each in before:
                shutil.rmtree(each)


def kept_in(directory: str | None) -> Kept | None:
    """Returns what is kept in a directory; None where that is nothing whole."""
    import pyarrow as pa

    if directory is None:
        return None
    path = Path(directory)
    try:
        told = json.loads((path / TOLD).read_bytes())
        gone = {number: name for name, numbers in told["gone"].items() for number in numbers}
        steps, columns = told["steps"], _read(path / ROWS)
        last = str(steps[-1]["operator"])
        kept = Kept(columns, int(path.name), steps, told["removed"], gone, last)
        is_whole = len({len(values) for values in columns.values()}) == 1
    except (OSError, ValueError, LookupError, TypeError, AttributeError, pa.ArrowException):
        return None
    return kept if is_whole else None


def _read(path: Path) -> Columns:
    import pyarrow as pa

    columns: Columns = {}
    with pa.input_stream(str(path), compression="zstd") as file:
        for line in BufferedReader(file, 1 << 20):
            batch = json.loads(line.decode("utf-8", "surrogatepass"), object_hook=_from_json)
            for name, values in batch.items():
                columns.setdefault(name, []).extend(values)
    return columns


def _write(columns: Columns, path: Path) -> None:
    import pyarrow as pa

    with pa.output_stream(str(path), compression="zstd") as file:
        for start in range(0, rows_of(columns), _BATCH) or (0,):
            batch = {name: values[start : start + _BATCH] for name, values in columns.items()}
            for name, values in batch.items():
                if not set(map(type, values)) <= _SCALARS:
                    batch[name] = list(map(_as_json, values))
            line = json.dumps(batch, ensure_ascii=False)
            file.write(line.encode("utf-8", "surrogatepass") + b"\n")


def _as_json(value: Any) -> Any:
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is list:
        return list(map(_as_json, value))
    if kind is dict and _MARK not in value and all(type(key) is str for key in value):
        return {key: _as_json(each) for key, each in value.items()}
    if kind is bytes:
        return {_MARK: base64.b64encode(value).decode("ascii")}
    if kind is datetime and value.tzinfo is None:
        return {_MARK: None, "at": value.isoformat()}
    if kind.__module__ == "numpy" and kind.__name__ in _NUMPY:
        return value.item()
    raise _UnkeepableError(kind.__name__)


def _from_json(found: dict[str, Any]) -> Any:
    if _MARK not in found:
        return found
    encoded = found[_MARK]
    return datetime.fromisoformat(found["at"]) if encoded is None else base64.b64decode(encoded)

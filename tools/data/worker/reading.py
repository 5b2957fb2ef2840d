"""Reads a data set: values for operators, and each row as it stands, to be carried through."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from .agreed import AGAIN
from .entries import (
    ROW_FORMS,
    SEPARATORS,
    DamagedError,
    Entry,
    entries_in,
    form_of,
    open_lines,
    way_out,
)
from .failures import UnreadableError

Columns = dict[str, list[Any]]

UNREADABLE = "(not readable)"
"""What stands for the reader where it leaves out what is not a row."""

NO_TEXT = "(no text)"
"""What stands for the reader where it leaves rows without a text out."""

SUFFIX = "__dj__suffix__"
"""The field in which `suffix_filter` finds the ending of a row's file."""

_FAMILIES = ((".jsonl", ".json"), (".csv",), (".tsv",), (".parquet",))
"""Forms of which the files of one directory are read together."""


class Source:
    """What was read."""

    def __init__(self, columns: Columns, numbers: Sequence[int], broken: dict[int, Entry]) -> None:
        self.columns = columns
        self.numbers = list(numbers)
        self.broken = broken
        self.index = {number: at for at, number in enumerate(self.numbers)}
        self.cells: Columns = {}  # of a table, as they stand

    def copy(self, name: str, numbers: Iterable[int]) -> list[Any]:
        """Returns values for operators, which may change them in place."""
        return [
            _copied(value) if isinstance(value, list | dict) else value
            for value in self.pick(name, numbers)
        ]

    def pick(self, name: str, numbers: Iterable[int]) -> list[Any]:
        """Returns the values that some rows have in a field."""
        values = self.columns[name]
        return [values[self.index[number]] for number in numbers]


class Lines(Source):
    """Rows of JSON, or of a table whose cells became texts of JSON."""

    def __init__(  # what a pass over the file finds
        self,
        path: Path,
        starts: list[int],
        columns: Columns,
        numbers: list[int],
        broken: dict[int, Entry],
    ) -> None:
        super().__init__(columns, numbers, broken)
        self.path = path
        self._starts = starts

    def contents(self, numbers: Iterable[int]) -> Iterator[bytes]:
        """Yields rows as they stand."""
        with self.path.open("rb") as file:
            for number in numbers:
                at = self.index[number]
                file.seek(self._starts[at])
                yield file.read(self._starts[at + 1] - self._starts[at] - 1)


class Table(Source):
    """Rows of Parquet, or the texts of files."""

    def __init__(self, table: Any, limit: int | None) -> None:
        self.table = table if limit is None else table.slice(0, limit)
        names = self.table.column_names
        if len(set(names)) < len(names):
            again = next(name for name in names if names.count(name) > 1)
            raise UnreadableError(f"it has two columns {again!r}.", "Give them different names.")
        columns = {name: self.table[name].to_pylist() for name in names}
        super().__init__(columns, range(self.table.num_rows), {})


def read(config: dict[str, Any], directory: Path, limit: int | None, *, lenient: bool) -> Source:
    """Reads the file, or the files of the directory, that a recipe names."""
    path = Path(config["dataset_path"])
    suffixes = config.get("suffixes")
    files = [path] if path.is_file() else _files_in(path, suffixes)
    names_suffix = any("suffix_filter" in each for each in config["process"])
    if files and all(form_of(file.name) in ROW_FORMS for file in files):
        source: Source = _lines(files, directory, limit, lenient=lenient)
        if all(form_of(file.name) in SEPARATORS for file in files):
            _type_cells(source, config)
    else:
        source = Table(_table(path, directory, suffixes, add_suffix=names_suffix), limit)
    if names_suffix:
        source.columns.setdefault(SUFFIX, [path.suffix] * len(source.numbers))
    return source


def _files_in(directory: Path, suffixes: Sequence[str] | None) -> list[Path]:
    """The files with rows of a directory; none where most of its files are texts."""
    files = sorted(each for each in directory.rglob("*") if each.is_file())
    if suffixes:
        wanted = {f".{each.lower().removeprefix('.')}" for each in suffixes}
        files = [each for each in files if wanted & {each.suffix.lower(), form_of(each.name)}]
    kinds = [[each for each in files if form_of(each.name) in kind] for kind in _FAMILIES]
    found = [kind for kind in kinds if kind]
    rows = [each for kind in found for each in kind]
    if len(rows) * 2 < len(files):
        return []
    if len(found) > 1:
        names = ", ".join(kind[0].name for kind in found)
        raise UnreadableError(
            f"it has files of several forms ({names}).", "Name one of their endings in `suffixes`."
        )
    return rows


def _lines(files: Sequence[Path], directory: Path, limit: int | None, *, lenient: bool) -> Lines:
    target = directory / "rows.jsonl"
    starts, numbers, end = [0], list[int](), 0
    columns: Columns = {}
    broken: dict[int, Entry] = {}
    with target.open("wb") as copy:
        for number, (file, entry) in enumerate(_entries(files)):
            if limit is not None and len(numbers) == limit:
                break
            if entry.row is None:
                if not lenient or form_of(file.name) == ".json":
                    where = f"{file.name}, " if len(files) > 1 else ""
                    raise UnreadableError(f"{where}{entry}.", way_out(form_of(file.name)))
                broken[number] = entry
                continue
            is_table = form_of(file.name) in SEPARATORS
            made = json.dumps(entry.row, ensure_ascii=False).encode() if is_table else entry.content
            line = made.strip()
            copy.write(line + b"\n")
            end += len(line) + 1
            starts.append(end)
            if not entry.row.keys() <= columns.keys():
                for name in entry.row:
                    columns.setdefault(name, [None] * len(numbers))
            numbers.append(number)
            for name, values in columns.items():
                values.append(entry.row.get(name))
    if broken and not numbers:
        others = ", and so are all others" if len(broken) > 1 else ""
        raise UnreadableError(f"{next(iter(broken.values()))}{others}.", "Mend its rows.")
    return Lines(target, starts, columns, numbers, broken)


def _entries(files: Iterable[Path]) -> Iterator[tuple[Path, Entry]]:
    for path in files:
        form = form_of(path.name)
        with path.open("rb") as file:
            try:
                for entry in entries_in(open_lines(file, path.name), form):
                    yield path, entry
            except DamagedError as error:
                raise UnreadableError(str(error), AGAIN) from error


def _type_cells(source: Source, config: dict[str, Any]) -> None:
    """Turns cells into numbers in the columns that operators name, and empty cells into None.

    `cells` keeps them as they stand, to be written.
    """
    values = (
        each for step in config["process"] for each in (next(iter(step.values())) or {}).values()
    )
    named = {value.partition(".")[0] for value in values if isinstance(value, str)}
    source.cells = {**source.columns}
    for name, cells in source.cells.items():
        filled = [cell or None for cell in cells]
        if name in named and (numbers := _numbers(filled)) is not None:
            filled = numbers
        source.columns[name] = filled


def _numbers(cells: Sequence[str | None]) -> list[Any] | None:
    """The numbers that cells hold; None where one holds something else."""
    made = list[Any]()
    for cell in cells:
        try:
            made.append(None if cell is None else json.loads(cell, parse_constant=float))
        except ValueError:
            return None
    is_numeric = all(type(each) in {int, float, type(None)} for each in made)
    return made if is_numeric else None


def _table(path: Path, directory: Path, suffixes: Sequence[str] | None, *, add_suffix: bool) -> Any:
    """The rows of Parquet as they are, and the texts of other files as Data-Juicer reads them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix.lower() == ".parquet" and path.is_file():
        try:
            return pq.ParquetFile(path).read()
        except (pa.ArrowException, OSError) as error:
            raise UnreadableError(str(error), AGAIN) from error
    import datasets
    from data_juicer.core.data import NestedDataset
    from data_juicer.format import formatter, text_formatter
    from data_juicer.format.load import load_formatter

    def as_read(dataset: Any, **_options: object) -> Any:
        return NestedDataset(dataset)

    cache = str(directory / "cache")
    datasets.config.HF_DATASETS_CACHE = cache
    # It would look for rows without a text by a slow way.
    formatter.unify_format = text_formatter.unify_format = as_read
    try:
        find = load_formatter(str(path), suffixes=suffixes, add_suffix=add_suffix)
        loaded = find.load_dataset().with_format("arrow")
    except Exception as error:
        cause = error.__cause__ or error
        raise UnreadableError(
            str(cause).replace(cache, "").replace(os.fspath(path), "it")
        ) from error
    return datasets.Dataset.__getitem__(loaded, slice(0, len(loaded)))


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return [_copied(each) for each in value]
    if isinstance(value, dict):
        return {name: _copied(each) for name, each in value.items()}
    return value


def rows_of(columns: Columns) -> int:
    """Returns how many rows there are."""
    return len(next(iter(columns.values()), []))


def chosen(columns: Columns, keep: list[bool]) -> Columns:
    """Returns the rows that are to be kept."""
    return {
        name: [value for value, kept in zip(values, keep, strict=True) if kept]
        for name, values in columns.items()
    }

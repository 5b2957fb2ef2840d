"""Reads a data set: values for operators, and each row as it stands, to be carried through."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import Any

from .agreed import AGAIN
from .entries import (
    ROW_FORMS,
    SEPARATORS,
    SKIPS_ROWS,
    DamagedError,
    Entry,
    entries_in,
    form_of,
    open_lines,
    way_out,
)
from .failures import UnreadableError

Columns = dict[str, list[Any]]

NUMBER = "__toolcrib_row__"
"""The column with the number of each row."""

SUFFIX = "__dj__suffix__"
"""The field in which `suffix_filter` finds the ending of a row's file."""

_FAMILIES = {".jsonl": "JSON", ".json": "JSON", ".csv": "CSV", ".tsv": "TSV", ".parquet": "Parquet"}
"""Forms of which the files of one directory are read together."""


@dataclass(eq=False)
class Source:
    """A data set as it was read: rows with their numbers, and faults.

    Rows of JSON and of tables are lines of `path`; those of Parquet and texts are in `table`.
    """

    columns: Columns
    numbers: Sequence[int]
    broken: dict[int, Entry] = field(default_factory=dict)
    path: Path = Path()
    starts: list[int] = field(default_factory=list)
    table: Any = None
    cells: Columns = field(default_factory=dict)  # of a CSV or TSV file, as they stand

    def __post_init__(self) -> None:
        self.index = {number: at for at, number in enumerate(self.numbers)}

    def copy(self, name: str, numbers: Iterable[int]) -> list[Any]:
        """Returns values for operators, which may change them in place."""
        return list(map(_copy, self.pick(name, numbers)))

    def pick(self, name: str, numbers: Iterable[int]) -> list[Any]:
        """Returns the values that some rows have in a field."""
        values = self.columns[name]
        return [values[self.index[number]] for number in numbers]

    def lines(self, numbers: Iterable[int]) -> Iterator[bytes]:
        """Yields rows as they stand in `path`."""
        with self.path.open("rb") as file:
            for number in numbers:
                at = self.index[number]
                file.seek(self.starts[at])
                yield file.read(self.starts[at + 1] - self.starts[at] - 1)


def table_source(table: Any) -> Source:
    """Returns the rows of a table of Arrow."""
    names = table.column_names
    if len(set(names)) < len(names):
        again = next(name for name in names if names.count(name) > 1)
        raise UnreadableError(f"it has two columns {again!r}.", "Give them different names.")
    columns = {name: table[name].to_pylist() for name in names}
    return Source(columns, range(table.num_rows), table=table)


def read(config: dict[str, Any], directory: Path, limit: int | None) -> Source:
    """Reads the file, or the files of the directory, that a recipe names."""
    path = Path(config["dataset_path"])
    suffixes = config.get("suffixes")
    files = [path] if path.is_file() else _files_in(path, suffixes)
    names_suffix = any("suffix_filter" in each for each in config["process"])
    if files and all(form_of(file.name) in ROW_FORMS for file in files):
        source = _read_lines(files, directory, limit, config)
        if all(form_of(file.name) in SEPARATORS for file in files):
            _type_cells(source, config)
    else:
        source = table_source(_read_table(path, directory, suffixes, names_suffix)[:limit])
    if names_suffix:
        source.columns.setdefault(SUFFIX, [path.suffix] * len(source.numbers))
    return source


def _files_in(directory: Path, suffixes: Sequence[str] | None) -> list[Path]:
    """Returns the files with rows of a directory; none where most of its files are texts."""
    files = sorted(each for each in directory.rglob("*") if each.is_file())
    if suffixes:
        wanted = {f".{each.lower().removeprefix('.')}" for each in suffixes}
        files = [each for each in files if wanted & {each.suffix.lower(), form_of(each.name)}]
    rows = [each for each in files if form_of(each.name) in _FAMILIES]
    if len(rows) * 2 < len(files):
        return []
    firsts = {_FAMILIES[form_of(each.name)]: each.name for each in reversed(rows)}
    if len(firsts) > 1:
        names = ", ".join(sorted(firsts.values()))
        raise UnreadableError(
            f"it has files of several forms ({names}).", "Name one of their endings in `suffixes`."
        )
    return rows


def _read_lines(
    files: Sequence[Path], directory: Path, limit: int | None, config: dict[str, Any]
) -> Source:
    """Copies each row to a line of one file."""
    is_table = form_of(config["dataset_path"]) in SEPARATORS
    kwargs, lenient = config.get("load_dataset_kwargs"), config.get("load_jsonl_lenient")
    skips_rows = kwargs == SKIPS_ROWS if is_table else lenient
    path = directory / "rows.jsonl"
    starts, numbers, columns = [0], list[int](), Columns()
    broken: dict[int, Entry] = {}
    with path.open("wb") as copy:
        for number, (file, entry) in enumerate(_entries(files)):
            if limit is not None and len(numbers) == limit:
                break
            if entry.row is None:
                form = form_of(file.name)
                if form == ".json" or not skips_rows:
                    where = f"{file.name}, " if len(files) > 1 else ""
                    raise UnreadableError(f"{where}{entry}.", way_out(form))
                broken[number] = entry
                continue
            content = entry.content
            if form_of(file.name) in SEPARATORS:
                content = json.dumps(entry.row, ensure_ascii=False).encode()
            starts.append(starts[-1] + copy.write(content.strip() + b"\n"))
            if not entry.row.keys() <= columns.keys():
                for name in entry.row:
                    columns.setdefault(name, [None] * len(numbers))
            numbers.append(number)
            for name, values in columns.items():
                values.append(entry.row.get(name))
    if broken and not numbers:
        others = ", and so are all others" if len(broken) > 1 else ""
        raise UnreadableError(f"{next(iter(broken.values()))}{others}.", "Mend its rows.")
    return Source(columns, numbers, broken, path, starts)


def _entries(files: Iterable[Path]) -> Iterator[tuple[Path, Entry]]:
    for path in files:
        form = form_of(path.name)
        with path.open("rb", buffering=0) as file:
            try:
                for entry in entries_in(open_lines(file, path.name), form):
                    yield path, entry
            except DamagedError as error:
                raise UnreadableError(f"{error}.", AGAIN) from error


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
        source.columns[name] = (_numbers(filled) if name in named else None) or filled


def _numbers(cells: Sequence[str | None]) -> list[Any] | None:
    """Returns the numbers that cells hold; None where one holds something else."""
    try:
        made = [None if cell is None else json.loads(cell, parse_constant=float) for cell in cells]
    except ValueError:
        return None
    return made if all(type(each) in {int, float, type(None)} for each in made) else None


def _read_table(
    path: Path, directory: Path, suffixes: Sequence[str] | None, add_suffix: bool
) -> Any:
    """Returns the rows of Parquet as they are; texts of other files as Data-Juicer reads them."""
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

    cache = str(directory / "cache")
    datasets.config.HF_DATASETS_CACHE = cache
    # It would look for rows without a text by a slow way.
    formatter.unify_format = text_formatter.unify_format = lambda rows, **_: NestedDataset(rows)
    try:
        find = load_formatter(str(path), suffixes=suffixes, add_suffix=add_suffix)
        loaded = find.load_dataset().with_format("arrow")
    except Exception as error:
        cause = error.__cause__ or error
        why = str(cause).replace(cache, "").replace(os.fspath(path), "it")
        if isinstance(cause, UnicodeDecodeError) and (file := _not_utf_8(path)):
            why = f"{file} is not UTF-8: {cause}."
        raise UnreadableError(why) from error
    return datasets.Dataset.__getitem__(loaded, slice(0, len(loaded)))


def _not_utf_8(path: Path) -> str | None:
    """Returns the name of the first file that is not UTF-8, if it is a text."""
    from data_juicer.format.text_formatter import TextFormatter

    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.suffix in TextFormatter.SUFFIXES and file.suffix not in {".docx", ".pdf"}:
            try:
                file.read_bytes().decode()
            except UnicodeDecodeError:
                return file.name
    return None


def _copy(value: Any) -> Any:
    if isinstance(value, list):
        return [_copy(each) for each in value]
    if isinstance(value, dict):
        return {name: _copy(each) for name, each in value.items()}
    return value


def rows_of(columns: Columns) -> int:
    """Returns how many rows there are."""
    return len(next(iter(columns.values()), []))


def take_rows(columns: Columns, places: Sequence[int]) -> Columns:
    """Returns the rows at some places."""
    return {name: [values[at] for at in places] for name, values in columns.items()}


def compress_rows(columns: Columns, keep: Sequence[bool]) -> Columns:
    """Returns the rows that are to be kept."""
    return {name: list(compress(values, keep)) for name, values in columns.items()}

"""Rows as Data-Juicer reads them, in columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .agreed import AGAIN
from .entries import SEPARATORS, Entry, entries_of, lines_of, records_of, way_out
from .failures import RecipeError, UnreadableError

Columns = dict[str, list[Any]]

JSONL = ".jsonl"
"""How the names of files end that have a row in each line."""

UNREADABLE = "(not readable)"
"""What stands for the reader where it leaves lines of JSONL, CSV or TSV out that hold no row."""

NO_TEXT = "(no text)"
"""What stands for the reader where it leaves rows without a text out."""


class Read:
    """What was read.

    Args:
        columns: Its values.
        features: Their types, as `datasets` has them.
        numbers: The place of each row, from 0; None where none was left out.
        broken: Lines that were left out, since they hold no row.
    """

    def __init__(
        self,
        columns: Columns,
        features: Any,
        numbers: list[int] | None = None,
        broken: list[Entry] | None = None,
    ) -> None:
        self.columns = columns
        self.features = features
        self.numbers = list(range(rows_of(columns))) if numbers is None else numbers
        if len(self.numbers) != rows_of(columns):
            raise UnreadableError(
                f"it has {len(self.numbers)} rows, and its reader finds {rows_of(columns)}.",
                "Mend its rows.",
            )
        self.broken = broken or []

    def first(self, limit: int | None) -> Read:
        """Returns the first rows, with what was left out between them; all for None."""
        if limit is None or limit >= len(self.numbers):
            return self
        columns = {name: values[:limit] for name, values in self.columns.items()}
        end = self.numbers[limit]
        broken = [line for line in self.broken if line.number < end]
        return Read(columns, self.features, self.numbers[:limit], broken)


def read(
    path: str,
    cache: str,
    suffixes: list[str] | None,
    *,
    add_suffix: bool = False,
    lenient: bool = False,
) -> Read:
    """Reads a file, or all files of a directory that have the kind of most.

    Args:
        path: The file or directory.
        cache: Directory for what is kept on the way.
        suffixes: Endings of the files; None for all that are known.
        add_suffix: Whether each row tells the ending of its file.
        lenient: Whether lines of a JSONL file, and rows of a table, that hold no row are left out.

    Raises:
        UnreadableError: If it cannot be read.
    """
    source = Path(path)
    copied = fitting_rows(source, Path(cache).parent, lenient=lenient)
    if copied is None:
        try:
            return _read(path, cache, suffixes, add_suffix=add_suffix)
        except UnreadableError as error:
            if not (lenient and path.endswith(JSONL)):
                raise named(error, source) from error
        copied = _copy_rows(_entries(source), Path(cache).with_name(f"readable{JSONL}"))
    copy, numbers, broken = copied
    if not numbers:
        raise UnreadableError(f"{broken[0]}, and so are all others.", "Mend its rows.")
    loaded = _read(str(copy), cache, suffixes, add_suffix=add_suffix)
    return Read(loaded.columns, loaded.features, numbers, broken)


Copied = tuple[Path, list[int], list[Entry]]
"""A copy with rows alone, the place of each in the file, and what is not in it."""


def fitting_rows(source: Path, directory: Path, *, lenient: bool) -> Copied | None:
    """Copies a table that has rows which do not fit its header; None where it is none.

    Its reader would take fields of one column for another.

    Args:
        source: What is read.
        directory: Where the copy is made.
        lenient: Whether these rows are left out.

    Raises:
        UnreadableError: If there are some, and they are not left out.
    """
    if source.suffix not in SEPARATORS or not source.is_file():
        return None
    first = next((row for row in _entries(source) if row.fault), None)
    if first is None:
        return None
    if not lenient:
        raise UnreadableError(f"{first}.", way_out(source.suffix))
    copy, numbers, broken = _copy_rows(_entries(source), directory / f"readable{source.suffix}")
    return copy, numbers[1:], broken  # the header is no row


def named(error: RecipeError, source: Path) -> RecipeError:
    """Returns the error that says which place of a file cannot be read, as far as that is found."""
    if source.suffix == ".parquet" and source.is_file():
        return _named_parquet(error, source)
    if source.suffix not in {JSONL, ".json"} or not source.is_file():
        return error
    with source.open("rb") as file:
        broken = next((each for each in entries_of(file, source.suffix) if each.fault), None)
    if broken is None:
        return error
    return UnreadableError(f"{broken}.", way_out(source.suffix))


def _named_parquet(error: RecipeError, source: Path) -> RecipeError:
    """Returns the error that says why a Parquet file cannot be read; the same where it can."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        for _rows in pq.ParquetFile(source).iter_batches():
            pass
    except (pa.ArrowException, OSError) as fault:
        return UnreadableError(str(fault), AGAIN)
    return error


def _entries(source: Path) -> Iterator[Entry]:
    """The lines of a file of JSONL, or the records of a table."""
    separator = SEPARATORS.get(source.suffix)
    with source.open("rb") as file:
        yield from lines_of(file) if separator is None else records_of(file, separator)


def _copy_rows(lines: Iterator[Entry], copy: Path) -> Copied:
    numbers, broken = [], []
    with copy.open("wb") as file:
        for line in lines:
            if line.fault:
                broken.append(line)
            else:
                numbers.append(line.number)
                file.write(line.content)
    return copy, numbers, broken


def _read(path: str, cache: str, suffixes: list[str] | None, *, add_suffix: bool) -> Read:
    import datasets
    from data_juicer.core.data import NestedDataset
    from data_juicer.format import formatter, text_formatter
    from data_juicer.format.load import load_formatter

    def as_read(dataset: Any, **_options: object) -> Any:
        return NestedDataset(dataset)

    datasets.config.HF_DATASETS_CACHE = cache
    # It would look for empty rows by a slow way: `rows_without_text` does the same.
    formatter.unify_format = text_formatter.unify_format = as_read
    try:
        loaded = load_formatter(path, suffixes=suffixes, add_suffix=add_suffix).load_dataset()
        columns = datasets.Dataset.__getitem__(loaded, slice(0, len(loaded)))  # decodes
    except Exception as error:
        cause = error.__cause__ or error
        raise UnreadableError(str(cause).replace(cache, "")) from error
    return Read({name: list(values) for name, values in columns.items()}, loaded.features)


def rows_of(columns: Columns) -> int:
    """Returns how many rows there are."""
    return len(next(iter(columns.values()), []))


def chosen(columns: Columns, keep: list[bool]) -> Columns:
    """Returns the rows that are to be kept."""
    return {
        name: [value for value, kept in zip(values, keep, strict=True) if kept]
        for name, values in columns.items()
    }

"""Rows as Data-Juicer reads them, in columns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .failures import RecipeError
from .lines import Line, lines_of, naming_line

__all__ = ["JSONL", "UNREADABLE", "Columns", "Read", "read", "rows_of"]

Columns = dict[str, list[Any]]

JSONL = ".jsonl"
"""How the names of files end that have a row in each line."""

UNREADABLE = "(not readable)"
"""What stands for the reader where it leaves lines of JSONL out that hold no row."""


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
        broken: list[Line] | None = None,
    ) -> None:
        self.columns = columns
        self.features = features
        self.numbers = list(range(rows_of(columns))) if numbers is None else numbers
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
        lenient: Whether lines of a JSONL file that hold no row are left out.

    Raises:
        RecipeError: If it cannot be read.
    """
    try:
        return _read(path, cache, suffixes, add_suffix=add_suffix)
    except RecipeError as error:
        if not path.endswith(JSONL):
            raise
        if not lenient:
            raise naming_line(error, Path(path)) from error
    copy = Path(cache).with_name(f"readable{JSONL}")
    numbers, broken = _copy_rows(Path(path), copy)
    if not numbers:
        raise RecipeError("The data set cannot be read: none of its lines is a JSON object.")
    loaded = _read(str(copy), cache, suffixes, add_suffix=add_suffix)
    return Read(loaded.columns, loaded.features, numbers, broken)


def _copy_rows(path: Path, copy: Path) -> tuple[list[int], list[Line]]:
    """Copies the lines that hold a row; returns their places, and the other lines."""
    numbers, broken = [], []
    with copy.open("wb") as file:
        for line in lines_of(path):
            if line.fault:
                broken.append(line)
            else:
                numbers.append(line.number)
                file.write(line.content)
    return numbers, broken


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
        raise RecipeError(f"The data set cannot be read: {cause}".replace(cache, "")) from error
    return Read({name: list(values) for name, values in columns.items()}, loaded.features)


def rows_of(columns: Columns) -> int:
    """Returns how many rows there are."""
    return len(next(iter(columns.values()), []))

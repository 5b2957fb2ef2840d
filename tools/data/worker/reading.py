"""Rows as Data-Juicer reads them, in columns."""

from __future__ import annotations

from typing import Any

from .failures import RecipeError

__all__ = ["Columns", "Read", "read", "rows_of"]

Columns = dict[str, list[Any]]


class Read:
    """What was read.

    Args:
        columns: Its values.
        features: Their types, as `datasets` has them.
    """

    def __init__(self, columns: Columns, features: Any) -> None:
        self.columns = columns
        self.features = features


def read(path: str, cache: str, suffixes: list[str] | None, *, add_suffix: bool = False) -> Read:
    """Reads a file, or all files of a directory that have the kind of most.

    Args:
        path: The file or directory.
        cache: Directory for what is kept on the way.
        suffixes: Endings of the files; None for all that are known.
        add_suffix: Whether each row tells the ending of its file.

    Raises:
        RecipeError: If it cannot be read.
    """
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
    except Exception as error:
        cause = error.__cause__ or error
        raise RecipeError(f"The data set cannot be read: {cause}".replace(cache, "")) from error
    columns = datasets.Dataset.__getitem__(loaded, slice(0, len(loaded)))
    return Read({name: list(values) for name, values in columns.items()}, loaded.features)


def rows_of(columns: Columns) -> int:
    """Returns how many rows there are."""
    return len(next(iter(columns.values()), []))

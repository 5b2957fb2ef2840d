"""The first rows of a file: which keys a sample has, without Data-Juicer."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.files.sandbox import Sandbox

__all__ = ["Rows", "first_rows", "is_directory"]

READ_BYTES = 2_000_000
"""How much of a file is read."""

MOST = 200
"""Rows that are looked at."""

_SEPARATORS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a file.

    Attributes:
        rows: The first of them.
        is_whole: Whether there are no others.
    """

    rows: tuple[dict[str, Any], ...]
    is_whole: bool

    @property
    def keys(self) -> list[str]:
        """The keys that any of them has, in the order in which they come."""
        return list(dict.fromkeys(key for row in self.rows for key in row))

    def longest_text(self) -> str | None:
        """The key with the longest texts; None where none has a text."""
        texts = {
            key: sum(len(row[key]) for row in self.rows if isinstance(row.get(key), str))
            for key in self.keys
        }
        longest = max(texts, key=lambda key: texts[key], default=None)
        return longest if longest is not None and texts[longest] else None


def first_rows(sandbox: Sandbox, path: str) -> Rows | None:
    """The first rows of a file; None where it is of a form that is not read here.

    Raises:
        ToolError: If it cannot be opened.
    """
    suffix = PurePath(path).suffix.lower()
    if suffix not in {".jsonl", ".json", *_SEPARATORS}:
        return None
    content = sandbox.read(path, max_bytes=READ_BYTES)
    text = content.data.decode(errors="replace")
    if content.truncated:
        text = text[: text.rfind("\n") + 1]
    rows: list[dict[str, Any]] = []
    for row in _rows(text, suffix):
        if len(rows) == MOST:
            return Rows(tuple(rows), is_whole=False)
        rows.append(row)
    return Rows(tuple(rows), is_whole=not content.truncated)


def is_directory(sandbox: Sandbox, path: str) -> bool:
    """Whether a path is a directory.

    Raises:
        ToolError: If nothing is there, or it cannot be opened.
    """
    try:
        os.close(sandbox.open_directory(path))
    except InvalidArgumentsError:  # something else is there
        return False
    return True


def _rows(text: str, suffix: str) -> Iterator[dict[str, Any]]:
    if suffix in _SEPARATORS:
        yield from csv.DictReader(text.splitlines(), delimiter=_SEPARATORS[suffix])
        return
    if text.lstrip().startswith("["):
        yield from (each for each in _json(text, []) if isinstance(each, dict))
        return
    for line in text.splitlines():
        row = _json(line, None)
        if isinstance(row, dict):
            yield row


def _json(text: str, otherwise: Any) -> Any:  # noqa: ANN401  # whatever is written
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return otherwise

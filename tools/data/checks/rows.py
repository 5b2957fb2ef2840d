"""The first rows of a file: which keys a sample has, without Data-Juicer."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import PurePath
from typing import Any

from tools.core.errors import InvalidArgumentsError
from tools.sandbox.files.sandbox import Sandbox

__all__ = ["Rows", "first_rows", "is_directory"]

READ_BYTES = 2_000_000
"""How much of a file is read."""

MOST = 1_000
"""Rows that are looked at."""

_SEPARATORS = {".csv": ",", ".tsv": "\t"}


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a file.

    Attributes:
        rows: The first of them.
        is_whole: Whether there are no others.
        broken: The first line of JSONL that is no object, from 1; 0 where there is none.
    """

    rows: tuple[dict[str, Any], ...]
    is_whole: bool
    broken: int = 0

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
    found = list(islice(_rows(text, suffix), MOST + 1))
    rows = tuple(row for row in found[:MOST] if row is not None)
    is_whole = len(found) <= MOST and not content.truncated
    broken = found.index(None) + 1 if suffix == ".jsonl" and None in found else 0
    return Rows(rows, is_whole, broken)


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


def _rows(text: str, suffix: str) -> Iterator[dict[str, Any] | None]:
    """The rows of a text; None in the place of a line that is no row."""
    if suffix in _SEPARATORS:
        yield from csv.DictReader(text.splitlines(), delimiter=_SEPARATORS[suffix])
        return
    entries = _json(text) if text.lstrip().startswith("[") else None
    if isinstance(entries, list):
        yield from (each if isinstance(each, dict) else None for each in entries)
    else:
        for line in text.split("\n"):
            if line.strip():
                row = _json(line)
                yield row if isinstance(row, dict) else None


def _json(text: str) -> Any:  # noqa: ANN401  # whatever is written
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None

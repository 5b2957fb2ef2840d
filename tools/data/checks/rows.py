"""The first rows of a file: which keys a sample has, without Data-Juicer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import islice, pairwise, takewhile
from pathlib import PurePath
from typing import Any

from tools.core.errors import InvalidArgumentsError
from tools.data.worker.entries import NEVER_CLOSED, SEPARATORS, Entry, entries_of
from tools.sandbox.files.sandbox import Sandbox

READ_BYTES = 2_000_000
"""How much of a file is read."""

MOST = 1_000
"""Rows that are looked at."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a file.

    Attributes:
        rows: The first of them.
        is_whole: Whether there are no others.
        broken: What holds no row between them.
    """

    rows: tuple[dict[str, Any], ...]
    is_whole: bool
    broken: tuple[Entry, ...] = ()

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
    if suffix not in {".jsonl", ".json", *SEPARATORS}:
        return None
    content = sandbox.read(path, max_bytes=READ_BYTES)
    entries = entries_of(BytesIO(content.data), suffix)
    if content.truncated:
        entries = _whole(entries)
    found = list(islice((each for each in entries if not each.is_header), MOST + 1))
    first = found[:MOST]
    return Rows(
        rows=tuple(each.row for each in first if each.row is not None),
        is_whole=len(found) <= MOST and not content.truncated,
        broken=tuple(each for each in first if each.fault),
    )


def _whole(entries: Iterator[Entry]) -> Iterator[Entry]:
    """Those before the one in which a file was cut."""
    closed = takewhile(lambda each: each.fault != NEVER_CLOSED, entries)
    return (each for each, _next in pairwise(closed))


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

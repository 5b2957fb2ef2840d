"""The first rows of a file: which keys a sample has, without Data-Juicer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise, takewhile
from typing import Any

from tools.core.errors import InvalidArgumentsError
from tools.data.worker.agreed import AGAIN
from tools.data.worker.entries import (
    NEVER_CLOSED,
    ROW_FORMS,
    DamagedError,
    Entry,
    entries_in,
    form_of,
    open_lines,
)
from tools.data.worker.texts import text_key_of
from tools.sandbox.files.sandbox import Sandbox

READ_BYTES = 2_000_000
MOST_BYTES = 200_000_000  # where the first row is longer than that
MOST_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class Rows:
    """The first rows of a file, `size` bytes, and what is not a row between them."""

    rows: tuple[dict[str, Any], ...]
    broken: tuple[Entry, ...]
    is_whole: bool
    size: int

    @property
    def keys(self) -> list[str]:
        """The keys that any of them has, in their order."""
        return list(dict.fromkeys(key for row in self.rows for key in row))

    def estimate(self, size: int) -> int:
        """Returns how many rows a file of so many bytes probably has."""
        return round(size * len(self.rows) / max(self.size, 1))

    def text_key(self) -> str | None:
        """Returns the key of their texts; None where none has a text."""
        return text_key_of(self.rows)


def first_rows(sandbox: Sandbox, path: str) -> Rows | None:
    """Returns the first rows of a file; None where it is of a form that is not read here."""
    if form_of(path) not in ROW_FORMS:
        return None
    found = _read(sandbox, path, READ_BYTES)
    return found if found.rows or found.is_whole else _read(sandbox, path, MOST_BYTES)


def _read(sandbox: Sandbox, path: str, most: int) -> Rows:
    read = 0

    def counted(lines: Iterator[bytes]) -> Iterator[bytes]:
        nonlocal read
        for line in lines:
            read += len(line)
            yield line

    try:
        with sandbox.open_read(path) as file:
            lines = counted(open_lines(file, path, most))
            found = list(islice(entries_in(lines, form_of(path)), MOST_ROWS + 1))
            is_cut = read >= most
    except DamagedError as error:
        raise InvalidArgumentsError(f"{path}: {error}.", next_actions=[AGAIN]) from error
    if is_cut and len(found) <= MOST_ROWS:  # the last may be cut
        closed = takewhile(lambda each: each.fault != NEVER_CLOSED, found)
        found = [each for each, _next in pairwise(closed)]
    first = found[:MOST_ROWS]
    return Rows(
        rows=tuple(each.row for each in first if each.row is not None),
        broken=tuple(each for each in first if each.fault),
        is_whole=len(found) <= MOST_ROWS and not is_cut,
        size=sum(len(each.content) + 1 for each in first),
    )


def is_directory(sandbox: Sandbox, path: str) -> bool:
    """Returns whether a path is a directory."""
    try:
        os.close(sandbox.open_directory(path))
    except InvalidArgumentsError:  # something else is there
        return False
    return True

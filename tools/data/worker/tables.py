"""Rows of CSV and TSV, those too that do not fit their header."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

from .lines import NOT_UNICODE, Line

__all__ = ["SEPARATORS", "records_of"]

SEPARATORS = {".csv": ",", ".tsv": "\t"}
"""By the ending of a file's name, what is between two fields."""


def records_of(path: Path) -> Iterator[Line]:
    """Yields the header of a table and its rows, each from its first line on.

    What has fewer fields than the header is a row: the others are empty.
    """
    csv.field_size_limit(sys.maxsize)
    separator = SEPARATORS[path.suffix]
    with path.open("rb") as file:
        lines: Iterator[bytes] = iter(file)
        number, width = 0, None
        while (taken := _record(lines, separator)) is not None:
            content, fields, rest = taken
            if content.strip(b" \r\n"):
                fault = _fault(content, fields, width, is_open=rest is not None)
                width = fields if width is None else width
                yield Line(number, content, fault)
            number += content.count(b"\n")
            if rest:
                lines = iter(rest)  # all that there is


def _record(lines: Iterator[bytes], separator: str) -> tuple[bytes, int, list[bytes] | None] | None:
    """The next record and how many fields it has; None where there is none.

    Where a quote is never closed, it is the first line, and the lines that were read after it.
    """
    taken: list[bytes] = []
    is_open = False

    def read() -> Iterator[str]:
        nonlocal is_open
        for line in lines:
            taken.append(line)
            yield line.decode(errors="surrogateescape")
        is_open = True  # more is wanted than there is

    fields = next(csv.reader(read(), delimiter=separator), None)
    if fields is None:
        return None
    if is_open:
        return taken[0], len(fields), taken[1:]
    return b"".join(taken), len(fields), None


def _fault(content: bytes, fields: int, width: int | None, *, is_open: bool) -> str:
    """Why a record holds no row; empty where it holds one."""
    try:
        content.decode()
    except UnicodeError:
        return NOT_UNICODE
    if is_open:
        return "a quote is never closed"
    if width is not None and fields > width:
        return f"{fields} fields, and the header has {width}"
    return ""

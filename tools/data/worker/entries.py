"""What a file has in the places of its rows: rows, and what holds none.

The server finds them by this too, without Data-Juicer: it needs no package.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import chain
from typing import Any, BinaryIO

SEPARATORS = {".csv": ",", ".tsv": "\t"}
"""By the ending of a file's name, what is between two fields."""

SKIPS_ROWS = {"on_bad_lines": "skip"}
"""Arguments of the reader of tables that leave rows out which do not fit their header."""

NEVER_CLOSED = "a quote is never closed"
"""Why a record is none that goes on to the end."""

_NO_OBJECT = "another value"
_NOT_UNICODE = "not all of it is Unicode"
_RETURNS = "a carriage return stands without a line feed"
_TOO_DEEP = "too many brackets in each other"

_CHARACTERS = 160
"""Of an entry that is shown."""

_MARK = b"\xef\xbb\xbf"
"""What some programs begin a file with, and no reader of rows expects."""

_BLANK = re.compile(r"\s*")


class Entry:
    """What is in the place of a row.

    Args:
        number: The line where it begins, from 0.
        content: Its bytes; of a value in an array none.
        row: Its values by their keys; None for what holds none, and for the header of a table.
        fault: Why it holds no row; empty where it holds one, and for a header.
    """

    def __init__(
        self, number: int, content: bytes, row: dict[str, Any] | None, fault: str = ""
    ) -> None:
        self.number = number
        self.content = content
        self.row = row
        self.fault = fault

    def __str__(self) -> str:
        """Where it is, and what is wrong with it."""
        return f"line {self.number + 1}: {self.fault}"

    @property
    def is_header(self) -> bool:
        """Whether it is the header of a table."""
        return self.row is None and not self.fault

    @property
    def text(self) -> str:
        """How it begins."""
        return self.content[: 4 * _CHARACTERS].decode(errors="replace").strip()[:_CHARACTERS]


def entries_of(file: BinaryIO, suffix: str) -> Iterator[Entry]:
    """Returns what is in the places of rows; of a table the header first.

    Args:
        file: The file at its beginning, which can be sought.
        suffix: The ending of its name.
    """
    if suffix in SEPARATORS:
        return records_of(file, SEPARATORS[suffix])
    begin = file.read(1_024).removeprefix(_MARK).lstrip()[:1]
    file.seek(0)
    if suffix != ".json" and begin != b"[":
        return lines_of(file)
    content = file.read().removeprefix(_MARK)
    row, fault = _row(content)
    if row is not None:  # one object on several lines
        return iter([Entry(0, content, row)])
    if begin == b"[" and (suffix == ".json" or fault == _NO_OBJECT):
        return _values_of(content)
    return lines_of(BytesIO(content))


def way_out(suffix: str) -> str:
    """Returns what to do where an entry holds no row.

    Args:
        suffix: The ending of the file's name.
    """
    if suffix in SEPARATORS:
        setting = "load_dataset_kwargs to {on_bad_lines: skip}"
    elif suffix == ".jsonl":
        setting = "load_jsonl_lenient to true"
    else:
        return "Mend it there."
    return f"Set {setting}, which leaves such rows out, or mend it there."


def lines_of(lines: Iterable[bytes]) -> Iterator[Entry]:
    """Yields the lines of JSONL that are not empty."""
    for number, content in enumerate(lines):
        if content.strip():
            plain = content.removeprefix(_MARK)
            row, fault = _row(plain)
            yield Entry(number, plain, row, fault)


def records_of(file: Iterable[bytes], separator: str) -> Iterator[Entry]:
    """Yields the header of a table and its rows.

    What has fewer fields than the header is a row: the others are empty.
    """
    csv.field_size_limit(sys.maxsize)
    lines = iter(file)
    number, header = 0, None
    while (taken := _record(lines, separator)) is not None:
        content, fields, fault, rest = taken
        if content.strip(b" \r\n"):
            fault = fault or _misfit(content, fields, header)
            row = None if fault or header is None else _named(header, fields)
            yield Entry(number, content, row, fault)
            header = fields if header is None else header
        number += content.count(b"\n")
        if rest:
            lines = iter(rest)  # all that there is


def _values_of(content: bytes) -> Iterator[Entry]:
    """Yields the values of an array of JSON, up to where it is broken."""
    text = content.decode(errors="surrogateescape")
    decoder = json.JSONDecoder()
    at, end = text.index("[") + 1, len(text)
    number, counted, count = 0, 0, 0
    while (at := _skip(text, at)) < end and text[at] != "]":
        number, counted, count = number + text.count("\n", counted, at), at, count + 1
        try:
            value, after = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            yield _broken(error)
            return
        except RecursionError:
            yield Entry(number, b"", None, _TOO_DEEP)
            return
        yield _value(value, text[at:after], number, count)
        at = _skip(text, after)
        if at < end and text[at] == ",":
            at += 1
        elif at < end and text[at] != "]":
            yield _broken(json.JSONDecodeError("Expecting ',' delimiter", text, at))
            return
    if at >= end:
        yield _broken(json.JSONDecodeError("Expecting ']'", text, at))
    elif (after := _skip(text, at + 1)) < end:
        yield _broken(json.JSONDecodeError("Extra data", text, after))


def _row(content: bytes) -> tuple[dict[str, Any] | None, str]:
    """The row of a line of JSONL, or why it holds none."""
    try:
        row = json.loads(content.decode().rstrip("\r\n"))
        if b"\\u" in content:
            json.dumps(row, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        return None, f"{error.msg}, character {error.colno}"
    except UnicodeError:  # of bytes, or of half a character that is written with \u
        return None, _NOT_UNICODE
    except RecursionError:
        return None, _TOO_DEEP
    return (row, "") if isinstance(row, dict) else (None, _NO_OBJECT)


def _record(
    lines: Iterator[bytes], separator: str
) -> tuple[bytes, list[str], str, list[bytes]] | None:
    """The next record, its fields, and why it is none; None where there is none any more.

    Where a quote is never closed, it is the first line, and last are the lines read after that.
    """
    taken: list[bytes] = []
    is_open = False

    def read() -> Iterator[str]:
        nonlocal is_open
        for line in lines:
            taken.append(line)
            yield line.decode(errors="surrogateescape")
        is_open = True  # more is wanted than there is

    try:
        fields = next(csv.reader(read(), delimiter=separator), None)
    except csv.Error:
        return b"".join(taken), [], _RETURNS, []
    if fields is None:
        return None
    if is_open:
        return taken[0], fields, NEVER_CLOSED, taken[1:]
    return b"".join(taken), fields, "", []


def _misfit(content: bytes, fields: list[str], header: list[str] | None) -> str:
    """Why a record holds no row; empty where it holds one."""
    try:
        content.decode()
    except UnicodeError:
        return _NOT_UNICODE
    if header is not None and len(fields) > len(header):
        return f"{len(fields)} fields, and the header has {len(header)}"
    return ""


def _named(header: list[str], fields: list[str]) -> dict[str, Any]:
    missing = [None] * (len(header) - len(fields))
    return dict(zip(header, chain(fields, missing), strict=True))


def _value(value: object, text: str, number: int, count: int) -> Entry:
    if not isinstance(value, dict):
        return Entry(number, b"", None, f"value {count} of its array is no object")
    try:
        text.encode()
    except UnicodeError:
        return Entry(number, b"", None, _NOT_UNICODE)
    return Entry(number, b"", value)


def _broken(error: json.JSONDecodeError) -> Entry:
    return Entry(error.lineno - 1, b"", None, f"{error.msg}, character {error.colno}")


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return at if blank is None else blank.end()

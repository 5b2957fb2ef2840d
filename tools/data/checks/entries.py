"""What a file has in the places of its rows: rows, and what holds none, as the worker finds it."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import chain
from typing import Any

__all__ = ["SEPARATORS", "Broken", "Entry", "entries"]

SEPARATORS = {".csv": ",", ".tsv": "\t"}
"""By the ending of a file's name, what is between two fields."""

NOT_UNICODE = "not all of it is Unicode"
NO_OBJECT = "another value"

_MARK = b"\xef\xbb\xbf"
_BLANK = re.compile(r"\s*")


@dataclass(frozen=True, slots=True)
class Broken:
    """What holds no row.

    Attributes:
        line: Where it begins, from 1.
        fault: Why it holds none.
    """

    line: int
    fault: str

    def __str__(self) -> str:
        """Both in one."""
        return f"line {self.line}: {self.fault}"


Entry = dict[str, Any] | Broken


def entries(data: bytes, suffix: str, *, is_cut: bool = False) -> Iterator[Entry]:
    """Yields what is in the place of each row.

    Args:
        data: The content of a file.
        suffix: The ending of its name.
        is_cut: Whether the file has more, so that nothing is wrong with the end.
    """
    plain = data.removeprefix(_MARK)
    if suffix not in SEPARATORS and _is_array(plain, suffix):
        return _array(plain, is_cut=is_cut)
    if is_cut:
        plain = plain[: plain.rfind(b"\n") + 1]
    if suffix in SEPARATORS:
        return _table(BytesIO(plain).readlines(), SEPARATORS[suffix], is_cut=is_cut)
    if suffix == ".json" and not is_cut and isinstance(row := _line(1, plain), dict):
        return iter([row])  # one object on several lines
    lines = enumerate(plain.split(b"\n"), 1)
    return (_line(number, line) for number, line in lines if line.strip())


def _is_array(content: bytes, suffix: str) -> bool:
    """Whether it is one array; of JSONL a line may be one too, that is no row."""
    if not content.lstrip().startswith(b"["):
        return False
    whole = Broken(1, NO_OBJECT)  # what a line is that holds an array
    return suffix == ".json" or _line(1, content) == whole


def _line(number: int, content: bytes) -> Entry:
    """The row of a line of JSONL."""
    try:
        row = json.loads(content.decode())
        if b"\\u" in content:
            json.dumps(row, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        return Broken(number, f"{error.msg}, character {error.colno}")
    except UnicodeError:
        return Broken(number, NOT_UNICODE)
    except RecursionError:
        return Broken(number, "too many brackets in each other")
    return row if isinstance(row, dict) else Broken(number, NO_OBJECT)


def _array(data: bytes, *, is_cut: bool) -> Iterator[Entry]:
    """The values of an array, as far as it is whole."""
    text = data.decode(errors="surrogateescape")
    decoder = json.JSONDecoder()
    at, end = text.index("[") + 1, len(text)
    line, counted = 1, 0
    while (at := _skip(text, at)) < end and text[at] != "]":
        line, counted = line + text.count("\n", counted, at), at
        try:
            value, after = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError) as error:
            if not is_cut:
                yield _broken(error, line)
            return
        yield _value(value, text[at:after], line)
        at = _skip(text, after)
        if at < end and text[at] == ",":
            at += 1
        elif at < end and text[at] != "]":
            yield _broken(json.JSONDecodeError("Expecting ',' delimiter", text, at), line)
            return
    if at >= end and not is_cut:
        yield _broken(json.JSONDecodeError("Expecting ']'", text, at), 1)


def _value(value: object, text: str, line: int) -> Entry:
    if not isinstance(value, dict):
        return Broken(line, NO_OBJECT)
    try:
        text.encode()
    except UnicodeError:
        return Broken(line, NOT_UNICODE)
    return value


def _broken(error: json.JSONDecodeError | RecursionError, line: int) -> Broken:
    if isinstance(error, RecursionError):
        return Broken(line, "too many brackets in each other")
    return Broken(error.lineno, f"{error.msg}, character {error.colno}")


def _skip(text: str, at: int) -> int:
    blank = _BLANK.match(text, at)
    return at if blank is None else blank.end()


def _table(lines: Sequence[bytes], separator: str, *, is_cut: bool) -> Iterator[Entry]:
    """The rows of a table; where a quote is never closed, its line is broken and no more."""
    csv.field_size_limit(sys.maxsize)
    header: list[str] | None = None
    start = 0
    while start < len(lines):
        fields, end, is_open = _record(lines, start, separator)
        content = b"".join(lines[start:end])
        if is_open and is_cut:
            return
        if is_open:
            yield Broken(start + 1, "a quote is never closed")
            end = start + 1
        elif content.strip(b" \r\n"):
            row = _row(fields, header, content, start + 1)
            if header is None:
                header = fields
            else:
                yield row
        start = end


def _record(lines: Sequence[bytes], start: int, separator: str) -> tuple[list[str], int, bool]:
    """The fields of the record that begins in a line, the line after it, and whether it is open."""
    end = start
    is_open = False

    def read() -> Iterator[str]:
        nonlocal end, is_open
        while end < len(lines):
            end += 1
            yield lines[end - 1].decode(errors="replace")
        is_open = True  # more is wanted than there is

    fields = next(csv.reader(read(), delimiter=separator), [])
    return fields, end, is_open


def _row(fields: list[str], header: list[str] | None, content: bytes, line: int) -> Entry:
    try:
        content.decode()
    except UnicodeError:
        return Broken(line, NOT_UNICODE)
    names = header or []
    if header is not None and len(fields) > len(header):
        return Broken(line, f"{len(fields)} fields, and the header has {len(header)}")
    missing = [None] * (len(names) - len(fields))
    return dict(zip(names, chain(fields, missing), strict=False))

"""Reads the rows of JSON, JSONL, CSV and TSV, and names by line what is not a row.

The server reads first rows with it too, without Data-Juicer: it needs no package, but for `.zst`.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import PurePath
from typing import Any, BinaryIO

SEPARATORS = {".csv": ",", ".tsv": "\t"}  # by the ending of a file's name

ROW_FORMS = (".jsonl", ".json", *SEPARATORS)

SKIPS_ROWS = {"on_bad_lines": "skip"}
"""Arguments of the reader of tables that leave out rows which do not fit their header."""

NEVER_CLOSED = "a quote is never closed"
_NO_OBJECT = "another value"
_NOT_UNICODE = "not all of it is Unicode"
_RETURNS = "a carriage return stands without a line feed"
_TOO_DEEP = "too many brackets in each other"

_CHARACTERS = 160  # of an entry that are shown
_MOST_DIGITS = 4_000  # Python refuses to read integers of more than 4,300 digits

_MARK = b"\xef\xbb\xbf"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_BLANK = re.compile(r"\s*")
_DAMAGE = (EOFError, OSError, zlib.error, lzma.LZMAError)


class DamagedError(ValueError):
    """A file that cannot be decompressed or decoded to its end."""


@dataclass(slots=True)
class Entry:
    """A row of a file, or a fault that takes its place."""

    number: int
    content: bytes
    row: dict[str, Any] | None
    fault: str = ""

    def __str__(self) -> str:
        """Returns where it is, and what is wrong with it."""
        return f"line {self.number + 1}: {self.fault}"

    @property
    def text(self) -> str:
        """The beginning of its content."""
        return self.content[: 4 * _CHARACTERS].decode(errors="replace").strip()[:_CHARACTERS]


def form_of(name: str) -> str:
    """Returns the ending for the form of a file, without the one for its compression."""
    path = PurePath(name.lower())
    return PurePath(path.stem).suffix if path.suffix in _OPENERS else path.suffix


def stem_of(name: str) -> str:
    """Returns the name of a file without the endings of its compression and form."""
    path = PurePath(name)
    return PurePath(path.stem).stem if path.suffix.lower() in _OPENERS else path.stem


def open_lines(file: BinaryIO, name: str, most: int | None = None) -> Iterator[bytes]:
    """Yields the lines of a file, decompressed and as UTF-8 without a byte order mark."""
    suffix = PurePath(name).suffix.lower()
    size = -1 if most is None else most
    lines: Iterator[bytes]
    try:
        plain: Any = _OPENERS[suffix](file) if suffix in _OPENERS else file
        with io.BufferedReader(plain, 1 << 16) as whole:
            begin = whole.peek(2)[:2]
            if begin in _UTF_16:
                text = io.TextIOWrapper(whole, "utf-16", errors="surrogateescape", newline="\n")
                lines = (line.encode("utf-8", "surrogatepass") for line in text)
            elif len(begin) > begin.count(0) == 1:
                raise DamagedError("it is UTF-16 without a byte order mark; write it as UTF-8")
            else:
                lines = iter(lambda: whole.readline(size), b"")
            for number, line in enumerate(lines):
                yield line if number else line.removeprefix(_MARK)
                if most is not None and (most := most - len(line)) <= 0:
                    return
    except UnicodeDecodeError as error:
        raise DamagedError(f"it is not valid UTF-16: {error.reason}") from error
    except _damage() as error:
        if suffix not in _OPENERS:
            raise
        why = str(error) or type(error).__name__
        raise DamagedError(f"it cannot be decompressed: {why}") from error


def entries_in(lines: Iterator[bytes], form: str) -> Iterator[Entry]:
    """Yields the rows and faults of a file, without the header of a table."""
    if form in SEPARATORS:
        return _records(lines, SEPARATORS[form])
    begin = list[bytes]()
    for line in lines:
        begin.append(line)
        if line.strip():
            break
    opening = begin[-1].lstrip()[:1] if begin else b""
    if form != ".json" and opening != b"[":
        return lines_of(chain(begin, lines))
    content = b"".join(chain(begin, lines))
    row, fault = _row(content)
    if row is not None:  # one object on several lines
        return iter([Entry(0, on_one_line(content), row)])
    if opening == b"[" and (form == ".json" or fault == _NO_OBJECT):
        return _values_of(content)
    return lines_of(content.split(b"\n"))


def on_one_line(content: bytes) -> bytes:
    """Returns valid JSON on one line: its strings hold no line breaks."""
    return content.strip().replace(b"\r", b" ").replace(b"\n", b" ")


def way_out(suffix: str) -> str:
    """Returns what to do where an entry is not a row."""
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


def _records(lines: Iterator[bytes], separator: str) -> Iterator[Entry]:
    """Yields the rows of a table; fields that a row lacks are None."""
    csv.field_size_limit(sys.maxsize)
    number, header = 0, list[str]()
    while record := _next_record(lines, separator):
        taken, fields, fault = record
        if fault == NEVER_CLOSED:  # the lines after the first may be rows
            lines, taken = iter(taken[1:]), taken[:1]
        content = b"".join(taken)
        if content.strip(b" \r\n"):
            fault = fault or _misfit(content, fields, header)
            if fault:
                yield Entry(number, content, None, fault)
                if not header:  # without which nothing can be read
                    return
            elif header:
                yield Entry(number, content, dict(zip_longest(header, fields)))
            header = header or fields
        number += content.count(b"\n")


def _values_of(content: bytes) -> Iterator[Entry]:
    """Yields the values of an array of JSON, up to where it is broken."""
    text = content.decode(errors="surrogateescape")
    at, end = text.index("[") + 1, len(text)
    number, counted, count = 0, 0, 0
    try:
        while (at := skip_blank(text, at)) < end and text[at] != "]":
            number, counted, count = number + text.count("\n", counted, at), at, count + 1
            value, after = _DECODER.raw_decode(text, at)
            yield _value(value, text[at:after], number, count)
            at = skip_blank(text, after)
            if text[at : at + 1] == ",":
                at += 1
            elif at < end and text[at] != "]":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
        if at == end:
            raise json.JSONDecodeError("Expecting ']'", text, at)
        if (after := skip_blank(text, at + 1)) < end:
            raise json.JSONDecodeError("Extra data", text, after)
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError):
            number = error.lineno - 1
        yield Entry(number, b"", None, _fault_of(error))


def _value(value: object, text: str, number: int, count: int) -> Entry:
    if not isinstance(value, dict):
        return Entry(number, b"", None, f"value {count} of its array is not an object")
    try:
        content = text.encode()
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except UnicodeError as error:
        return Entry(number, b"", None, _fault_of(error))
    return Entry(number, on_one_line(content), value)


def _row(content: bytes) -> tuple[dict[str, Any] | None, str]:
    """Returns the row of a line of JSONL, or why it is not one."""
    try:
        row = _DECODER.decode(content.decode().rstrip("\r\n"))
        if b"\\u" in content:  # half a character may be written with it
            json.dumps(row, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        return None, _fault_of(error)
    return (row, "") if isinstance(row, dict) else (None, _NO_OBJECT)


def _fault_of(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg}, character {error.colno}"
    if isinstance(error, UnicodeError):
        return _NOT_UNICODE
    return _TOO_DEEP if isinstance(error, RecursionError) else str(error)


def _next_record(
    lines: Iterator[bytes], separator: str
) -> tuple[list[bytes], list[str], str] | None:
    """Returns the lines of the next record, its fields, and why it is not one; None at the end."""
    taken = list[bytes]()
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
        return taken, [], _RETURNS
    return None if fields is None else (taken, fields, NEVER_CLOSED if is_open else "")


def _misfit(content: bytes, fields: list[str], header: list[str]) -> str:
    """Returns why a record is not a row or a header; empty where it is."""
    try:
        content.decode()
    except UnicodeError:
        return _NOT_UNICODE
    if not header and (again := _repeated(fields)) is not None:
        return f"the header has {again!r} twice"
    if header and len(fields) > len(header):
        return f"{len(fields)} fields, and the header has {len(header)}"
    return ""


def skip_blank(text: str, at: int) -> int:
    """Returns the first place from `at` on that is not blank."""
    blank = _BLANK.match(text, at)
    return at if blank is None else blank.end()


def _repeated(names: Iterable[str]) -> str | None:
    seen = set[str]()
    return next((name for name in names if name in seen or seen.add(name)), None)  # type: ignore[func-returns-value]  # that is the point of `or`


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError(f"the key {_repeated(name for name, _ in pairs)!r} appears twice")
    return made


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < _MOST_DIGITS else float(digits)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_int=_integer)

SCAN: Callable[[str, int], tuple[Any, int]] = _DECODER.scan_once  # type: ignore[attr-defined]  # which has no stub
"""Reads the value that begins at a place of a text; returns it, and where it ends."""


def _open_zstandard(file: BinaryIO) -> Any:
    import zstandard

    return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)


def _damage() -> tuple[type[Exception], ...]:
    """Returns what is raised where a compressed file is damaged."""
    zstandard = sys.modules.get("zstandard")
    return _DAMAGE if zstandard is None else (*_DAMAGE, zstandard.ZstdError)


_OPENERS: dict[str, Any] = {
    ".gz": lambda file: gzip.GzipFile(fileobj=file),
    ".bz2": bz2.BZ2File,
    ".xz": lzma.LZMAFile,
    ".zst": _open_zstandard,
}
"""By the ending of a file's name, what decompresses it."""

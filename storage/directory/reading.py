"""Reads records from JSON, JSON lines and CSV files, by a directory's mapping.

The format is detected from the text. JSON is an array of objects, an object that contains one such
array, or one record. JSON lines have an object on each line. CSV has field names in its first line,
and commas, semicolons or tabs as delimiters. Case, blanks and hyphens in field names are ignored:
"Profile URL" is `profile_url`.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from storage.directory.fields import Fields
from storage.directory.models import Directory, Record, field_name
from storage.errors import InvalidSourceError, UnreadableDocumentError
from storage.reading.decode import decode

MAX_FILE_BYTES = 500_000_000
"""Size of the largest file that is read; parsing takes several times as much memory."""

_SHOWN = 80
_DELIMITERS = ",;\t"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row of a file that is not a record."""

    number: int
    reason: str


def read_records(
    source: Path | bytes,
    directory: Directory,
    *,
    on_skipped: Callable[[Skipped], None] | None = None,
) -> Iterator[Record]:
    """Yields the records of a file one by one; two may have the same key (see `united`).

    Fields that the directory does not name become facts. `on_skipped` is called for each record
    that has no name, or is null or empty.
    """
    fields = Fields(directory)
    for number, row in enumerate(_rows(source, directory), start=1):
        record = fields.record(number, row) if row else None
        if record is not None:
            yield record
        elif on_skipped is not None:
            on_skipped(Skipped(number, f"It has no {directory.name_field}." if row else "Empty."))


def _rows(source: Path | bytes, directory: Directory) -> Iterator[Mapping[str, Any] | None]:
    text = _text(source)
    start = text.lstrip()[:1]
    if not start:
        raise InvalidSourceError(
            f"{_label(source)} is empty.", suggestions=("Provide a file that contains records.",)
        )
    is_csv = isinstance(source, Path) and source.suffix.lower() in {".csv", ".tsv"}
    if start in "[{" and not is_csv:
        return _json_rows(text, directory)
    return _csv_rows(text, directory)


def _text(source: Path | bytes) -> str:
    if isinstance(source, Path):
        size = source.stat().st_size
        if size > MAX_FILE_BYTES:
            raise InvalidSourceError(
                f"{source} has {size} bytes; at most {MAX_FILE_BYTES} are read.",
                suggestions=("Split it into several files.",),
            )
    data = source.read_bytes() if isinstance(source, Path) else source
    try:
        return decode(data).text
    except UnreadableDocumentError as error:
        raise InvalidSourceError(
            f"{_label(source)}: {error.message}", suggestions=("Save it as UTF-8.",)
        ) from error


def _label(source: Path | bytes) -> str:
    return str(source) if isinstance(source, Path) else "The file"


def _json_rows(text: str, directory: Directory) -> Iterator[Mapping[str, Any] | None]:
    try:
        whole = json.loads(text)
    except RecursionError:
        raise InvalidSourceError(
            "The JSON is nested too deeply.", suggestions=("Give an array of records.",)
        ) from None
    except ValueError as error:
        if text.lstrip().startswith("[") or not _is_lines(text):
            raise InvalidSourceError(
                f"The JSON cannot be read: {error}.",
                suggestions=("Give an array of objects, or one object on each line.",),
            ) from error
        return _line_rows(text)
    return _objects(whole, directory)


def _is_lines(text: str) -> bool:
    try:
        json.loads(text.lstrip().split("\n", 1)[0])
    except (ValueError, RecursionError):
        return False
    return True


def _line_rows(text: str) -> Iterator[Mapping[str, Any] | None]:
    lines = (line for line in text.split("\n") if line.strip())
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidSourceError(
                f"Record {number} is not JSON: {error}: {line[:_SHOWN]!r}.",
                suggestions=("Give one object on each line.",),
            ) from error
        yield _row(number, value)


def _objects(whole: object, directory: Directory) -> Iterator[Mapping[str, Any] | None]:
    if isinstance(whole, dict):
        whole = _inside(whole, directory)
    assert isinstance(whole, list)  # noqa: S101  # the text starts with a bracket or a brace
    for number, value in enumerate(whole, start=1):
        yield _row(number, value)


def _inside(whole: dict[str, Any], directory: Directory) -> list[Any]:
    """Returns the only array in an object, or the object itself as the only record."""
    if field_name(directory.name_field) in map(field_name, whole):
        return [whole]
    arrays = {key: value for key, value in whole.items() if isinstance(value, list)}
    if len(arrays) != 1:
        has = f"has the arrays {', '.join(map(repr, arrays))}" if arrays else "has no array"
        raise InvalidSourceError(
            f"The JSON object {has} and no {directory.name_field!r}; one array of records is"
            " expected.",
            candidates=tuple(arrays),
            suggestions=("Give an array of objects, or an object with one array in it.",),
        )
    return next(iter(arrays.values()))


def _row(number: int, value: object) -> Mapping[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise InvalidSourceError(
            f"Record {number} is {json.dumps(value)[:_SHOWN]}; an object with fields is expected.",
            suggestions=("Give each record as an object.",),
        )
    return value


def _csv_rows(text: str, directory: Directory) -> Iterator[Mapping[str, Any] | None]:
    header = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = max(_DELIMITERS, key=header.count)
    reader = csv.reader(
        io.StringIO(text.lstrip("\r\n"), newline=""), delimiter=delimiter, strict=True
    )
    try:
        names = _header(next(reader), directory)
        for number, cells in enumerate((cells for cells in reader if cells), start=1):
            if len(cells) > len(names) and any(cells[len(names) :]):
                raise InvalidSourceError(
                    f"Record {number} has {len(cells)} cells; the first line names {len(names)}."
                    f" The first extra cell is {cells[len(names)][:_SHOWN]!r}.",
                    suggestions=(f"Put cells that contain {delimiter!r} in quotes.",),
                )
            yield dict(zip(names, cells, strict=False)) if any(map(str.strip, cells)) else None
    except csv.Error as error:
        raise InvalidSourceError(
            f"Line {reader.line_num} of the CSV cannot be read: {error}.",
            suggestions=(
                "Check the quotes in that line and the lines before it.",
                f"Give fields of more than {csv.field_size_limit()} characters as JSON.",
            ),
        ) from error


def _header(cells: list[str], directory: Directory) -> list[str]:
    names = [cell.strip() for cell in cells]
    folded = [field_name(name) for name in names if name]
    twice = next((name for name in names if folded.count(field_name(name)) > 1), None)
    if twice is not None:
        raise InvalidSourceError(
            f"The first line names {twice!r} twice.",
            suggestions=("Give each column a unique name.",),
        )
    if field_name(directory.name_field) not in folded:
        raise InvalidSourceError(
            f"The first line has no column {directory.name_field!r}; it begins"
            f" {', '.join(names)[:_SHOWN]!r}.",
            suggestions=("Rename the column, or use a directory that maps another field.",),
        )
    return names

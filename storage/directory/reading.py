"""Records from files: JSON, JSON lines and CSV, read by a directory's mapping.

Which of the three it is tells the text itself. JSON is an array of objects, an object with one such
array in it, or one record; JSON lines have an object on each line. CSV has the names of the fields
in its first line, and commas, semicolons or tabs between them. Case, blanks and hyphens in the
names of fields do not count: "Profile URL" is `profile_url`.
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
"""Size of the largest file that is read: it is held in memory several times over."""

_SHOWN = 80
_DELIMITERS = ",;\t"


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record of a file that is none.

    Attributes:
        number: Its place in the file, from 1.
        reason: What it lacks.
    """

    number: int
    reason: str


def read_records(
    source: Path | bytes,
    directory: Directory,
    *,
    on_skipped: Callable[[Skipped], None] | None = None,
) -> Iterator[Record]:
    """The records of a file, each by itself: two may have one key (see `united`).

    A field that the directory does not name is kept among the facts.

    Args:
        source: A file, or what is in it.
        directory: Which fields mean what.
        on_skipped: Told of each record that has no name, or is null or empty.

    Raises:
        OSError: If the file cannot be opened.
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
            f"{_label(source)} is empty.", suggestions=("Give a file with records in it.",)
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
                f"{source} has {size} bytes; {MAX_FILE_BYTES} are read at most.",
                suggestions=("Cut it into several files.",),
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
    """Whether the first line is a JSON value by itself."""
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
    assert isinstance(whole, list)  # noqa: S101  # the text begins with a bracket or a brace
    for number, value in enumerate(whole, start=1):
        yield _row(number, value)


def _inside(whole: dict[str, Any], directory: Directory) -> list[Any]:
    """The array in an object, or the object as the only record."""
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
                    f" The first too many is {cells[len(names)][:_SHOWN]!r}.",
                    suggestions=(f"Put cells with {delimiter!r} in them in quotes.",),
                )
            yield dict(zip(names, cells, strict=False)) if any(map(str.strip, cells)) else None
    except csv.Error as error:
        raise InvalidSourceError(
            f"Line {reader.line_num} of the CSV cannot be read: {error}.",
            suggestions=(
                "Check the quotes in that line and before it.",
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
            suggestions=("Give each column a name of its own.",),
        )
    if field_name(directory.name_field) not in folded:
        raise InvalidSourceError(
            f"The first line names no column {directory.name_field!r}; it begins"
            f" {', '.join(names)[:_SHOWN]!r}.",
            suggestions=("Name it so, or give a directory whose mapping names another field.",),
        )
    return names

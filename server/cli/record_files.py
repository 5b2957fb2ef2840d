"""Reads JSON files that describe tools: one record or a list of records each."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from storage.catalog.catalog import Record
from tools.retrieval import ToolRecord

MOST_BYTES = 16_000_000
"""Size limit of files that describe tools."""

GENERATED = frozenset({"node_modules", "__pycache__"})
"""Directories whose content is generated; they contain no descriptions."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record or file that was skipped.

    Attributes:
        file: The file.
        reason: The reason, as a sentence.
    """

    file: Path
    reason: str


@dataclass(slots=True)
class Found:
    """The records in the files of a directory.

    Attributes:
        records: The records in order of their files; each tool_id occurs once.
        skipped: What was skipped.
    """

    records: list[Record] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def read_records(directory: Path) -> Found:
    """Reads the `*.json` files of a directory and its subdirectories, except hidden ones.

    Skips invalid records but keeps the valid ones of the same file. Does not follow links to
    directories.
    """
    found = Found()
    first: dict[str, Path] = {}
    for file in _files(directory, found.skipped):
        try:
            values = _values(file)
        except (OSError, ValueError) as error:
            found.skipped.append(Skipped(file, _reason(error)))
            continue
        for place, value in values:
            _add(found, first, file, place, value)
    return found


def _add(found: Found, first: dict[str, Path], file: Path, place: str, value: object) -> None:
    if not isinstance(value, dict):
        found.skipped.append(Skipped(file, f"{place}is not an object."))
        return
    try:
        record = ToolRecord.model_validate(value)
    except ValidationError as error:
        found.skipped.append(Skipped(file, f"{place}{_problem(error)}."))
        return
    if record.tool_id in first:
        reason = f"{place}tool_id {record.tool_id!r} is already in {first[record.tool_id]}."
        found.skipped.append(Skipped(file, reason))
        return
    first[record.tool_id] = file
    fields = record.model_dump(mode="json", exclude_defaults=True)
    found.records.append(Record(record.tool_id, file, fields))


def _files(directory: Path, skipped: list[Skipped]) -> Iterator[Path]:
    def refused(error: OSError) -> None:
        skipped.append(Skipped(Path(error.filename), _reason(error)))

    for here, directories, names in os.walk(directory, onerror=refused):
        kept = sorted(name for name in directories if name[0] != "." and name not in GENERATED)
        for name in [name for name in kept if Path(here, name).is_symlink()]:
            skipped.append(Skipped(Path(here, name), "a link to a directory; index that one."))
            kept.remove(name)
        directories[:] = kept
        for name in sorted(names):
            if name.lower().endswith(".json") and name[0] != ".":
                yield Path(here, name)


def _values(file: Path) -> Iterator[tuple[str, Any]]:
    """Yields each unchecked record of a file, with its position in a list.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is too large, not a regular file or not JSON, or its name is not UTF-8.
    """
    value = _parse(_content(file))
    if not isinstance(value, list):
        return iter([("", value)])
    return ((f"record {number}: ", each) for number, each in enumerate(value, start=1))


def _content(file: Path) -> str:
    try:
        str(file).encode()
    except UnicodeEncodeError as error:
        raise ValueError("has a name that is not valid UTF-8") from error
    if not stat.S_ISREG(file.stat().st_mode):  # reading a pipe would block forever
        raise ValueError("is not a regular file")
    with file.open("rb") as opened:
        content = opened.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"is larger than {MOST_BYTES // 1_000_000} MB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start})") from error


def _parse(content: str) -> object:
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"is not JSON: {error.msg} ({where})") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply") from error


def _problem(error: ValidationError) -> str:
    """Returns the first problem of a record, in terms of the file."""
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    what = first["msg"][:1].lower() + first["msg"][1:]
    more = f", and {error.error_count() - 1} more" if error.error_count() > 1 else ""
    return f"{where}: {what}{more}"


def _reason(error: OSError | ValueError) -> str:
    return f"{(error.strerror if isinstance(error, OSError) else None) or error}."

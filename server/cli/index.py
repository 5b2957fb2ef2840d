"""`toolcrib index`: indexes the tools that JSON files describe, one record or a list in each."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from server.cli.data.walk import GENERATED
from server.cli.search import filling
from server.cli.terminal.options import ConfigOption, DataDirOption
from server.cli.terminal.screen import console, echo, print_line
from server.mcp.visible import visible

if TYPE_CHECKING:
    from pydantic import ValidationError

    from server.app import App
    from storage.catalog.catalog import Record
    from tools.retrieval import ToolIndex

SHOWN_EVERY = 0.2
"""Seconds between updates of the progress bar."""

MOST_BYTES = 16_000_000
"""Size limit of files that describe tools."""


def index(
    tools_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Directory of JSON files that describe tools."),
    ] = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove what was indexed from the directory instead.")
    ] = False,
    forget_uses: Annotated[
        bool,
        typer.Option("--forget-uses", help="Forget which tools were used for which questions."),
    ] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Index, or index again, the tools that the JSON files of a directory describe."""
    from server.cli.opened import open_app

    if tools_dir is None and not forget_uses:
        raise typer.BadParameter("give --tools-dir, --forget-uses or both")
    if remove and tools_dir is None:
        raise typer.BadParameter("--remove needs --tools-dir: the directory to remove")
    if tools_dir is not None and not remove and not tools_dir.is_dir():
        raise typer.BadParameter(f"{str(tools_dir)!r} is not a directory", param_hint="--tools-dir")
    with open_app(data_dir=data_dir, config_file=config) as app:
        if tools_dir is not None:
            _index(app, tools_dir, remove=remove)
        if forget_uses:
            echo(f"Forgot {app.library.catalog.uses.forget(app.identity)} use(s).")


def _index(app: App, given: Path, *, remove: bool) -> None:
    directory = Path(os.path.realpath(given))
    found = Found() if remove else read_records(directory)
    gone = app.library.catalog.records.replace(directory, found.records)
    if remove:
        echo(f"Dropped {gone} tool(s) of {visible(str(given))}.")
        return
    for each in found.skipped:
        print_line(console(), f"Warning: skipped {each.file}: {each.reason}", "yellow")
    echo(f"Indexed {len(found.records)} tool(s) from {visible(str(given))}.")
    if gone:
        echo(f"Dropped {gone} that the files no longer describe.")
    # Embeds and stores the tool analyses in advance, so that searches do not wait.
    with filling(app) as (_, index, thread):
        _show_progress(index, thread)
        thread.join()


def _show_progress(index: ToolIndex, filling: threading.Thread) -> None:
    from server.cli.terminal.progress import bars, counter

    where = console()
    if not where.is_terminal:
        return
    with bars(where) as progress:
        show = counter(progress, "Embedding")
        while filling.is_alive():
            filling.join(SHOWN_EVERY)
            show(round(min(index.coverage.values()) * len(index)), len(index))


@dataclass(frozen=True, slots=True)
class Skipped:
    """A record or file that was skipped."""

    file: Path
    reason: str


@dataclass(slots=True)
class Found:
    """The records in the files of a directory."""

    # the records in order of their files; each tool_id occurs once
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
            content = _parse(_content(file))
        except (OSError, ValueError) as error:
            found.skipped.append(Skipped(file, _reason(error)))
            continue
        if not isinstance(content, list):
            _add(found, first, file, "", content)
            continue
        for number, value in enumerate(content, start=1):
            _add(found, first, file, f"record {number}: ", value)
    return found


def _add(found: Found, first: dict[str, Path], file: Path, place: str, value: object) -> None:
    from pydantic import ValidationError

    from storage.catalog.catalog import Record
    from tools.retrieval import ToolRecord

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

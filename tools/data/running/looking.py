"""Looks at the first rows of a data set; those of Parquet are read by Data-Juicer's worker."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple, get_args

import anyio.to_thread

from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError
from tools.data.answers.datasets import DatasetInspection, FieldReport, Form
from tools.data.checks.dataset import check_parquet
from tools.data.checks.rows import first_rows, is_directory
from tools.data.running.outputs import files_of
from tools.data.running.staging import Stage
from tools.data.worker.entries import form_of
from tools.data.worker.texts import joined, text_key_of, values_of
from tools.sandbox.files.sandbox import Sandbox

TEXTS = (".txt", ".md", ".rst", ".tex", ".html", ".markdown")  # files that are one text each
TEXT_BYTES = 50_000
SHOWN_ROWS = 3
SHOWN_BROKEN = 5
SHOWN_CHARACTERS = 400
EXAMPLE_CHARACTERS = 80

_TYPES: dict[type, str] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    type(None): "null",
}

Row = dict[str, Any]


class Seen(NamedTuple):
    """A description of a data set, and the rows of the sample."""

    inspection: DatasetInspection
    rows: list[Row]


async def look_at(context: RequestContext, path: str, sample: int) -> Seen:
    """Inspects a file, or a folder of texts, by its first rows."""
    sandbox = context.sandbox
    if await anyio.to_thread.run_sync(is_directory, sandbox, path):
        return await anyio.to_thread.run_sync(_look_at_folder, sandbox, path, sample)
    if PurePath(path).suffix.lower() == ".parquet":
        return await _look_at_parquet(context, path, sample)
    return await anyio.to_thread.run_sync(_look_at_file, sandbox, path, sample)


def _look_at_file(sandbox: Sandbox, path: str, sample: int) -> Seen:
    size = sandbox.read(path, max_bytes=0).size
    suffix, form = PurePath(path).suffix.lower(), form_of(path)
    if suffix in TEXTS:
        return _describe(path, "text", [_read_text(sandbox, path)], size=size, rows=1)
    found = first_rows(sandbox, path)
    if found is None:
        raise InvalidArgumentsError(
            f"{path} is of a form that is not read.",
            suggestions=[".jsonl", ".json", ".csv", ".tsv", ".parquet", "a folder of texts"],
            next_actions=[
                "Give a file of one of these forms (.gz, .bz2, .xz and .zst too), or a text folder."
            ],
        )
    is_plain = form == suffix  # the size of a compressed file does not tell its rows
    return _describe(
        path,
        form.removeprefix("."),
        list(found.rows[:sample]),
        size=size,
        rows=len(found.rows) if found.is_whole else None,
        about_rows=found.estimate(size) if is_plain and not found.is_whole else None,
        looked=len(found.rows) + len(found.broken),
        not_readable=len(found.broken),
        first_not_readable=list(map(str, found.broken[:SHOWN_BROKEN])),
    )


def _look_at_folder(sandbox: Sandbox, path: str, sample: int) -> Seen:
    files = files_of(sandbox, path)
    texts = [each for each in files if PurePath(each.path).suffix.lower() in TEXTS]
    if texts:
        rows = [_read_text(sandbox, each.path) for each in texts[:sample]]
        size, count = sum(each.size for each in texts), len(texts)
        return _describe(path, "text", rows, size=size, files=count, rows=count)
    data = [each for each in files if PurePath(each.path).suffix.lower()[1:] in get_args(Form)]
    if not data:
        raise InvalidArgumentsError(
            f"{path} has no file that is read.",
            next_actions=[f"Give a folder with files ending in {', '.join(TEXTS)}, or one file."],
        )
    raise InvalidArgumentsError(
        f"{path} is a folder of {len(data)} data files.",
        suggestions=[each.path for each in data[:3]],
        next_actions=["Give one of its files."],
    )


def _read_text(sandbox: Sandbox, path: str) -> Row:
    return {"text": sandbox.read(path, max_bytes=TEXT_BYTES).data.decode(errors="replace")}


async def _look_at_parquet(context: RequestContext, path: str, sample: int) -> Seen:
    from tools.data.running.workers import workers_of

    await anyio.to_thread.run_sync(check_parquet, context.sandbox, path)
    workers = await workers_of(context.machine)
    async with workers.directory() as directory:
        stage = Stage(context.sandbox, directory)
        copied = await anyio.to_thread.run_sync(stage.take, path)
        asked = {"do": "look", "path": copied, "source": path, "sample": sample}
        seen = await workers.ask(asked, context)
    size = context.sandbox.read(path, max_bytes=0).size
    return _describe(path, "parquet", list(seen["sample"]), size=size, rows=seen["rows"])


def _describe(path: str, form: str, sample: list[Row], **more: object) -> Seen:
    text_key = text_key_of(sample)
    texts = [joined(values_of(row, text_key)) for row in sample] if text_key is not None else []
    plain = [" ".join(text.split()).casefold() for text in texts if text]
    counts = {"files": 1, "looked": len(sample), "not_readable": 0, "first_not_readable": []}
    inspection = DatasetInspection.model_validate(
        {
            "path": path,
            "form": form,
            "sampled": len(sample),
            "fields": list(_report_fields(sample)),
            "text_key": text_key,
            "repeated": len(plain) - len(set(plain)),
            "sample": [{name: _cut(row[name]) for name in row} for row in sample[:SHOWN_ROWS]],
            **counts,
            **more,
        }
    )
    return Seen(inspection, sample)


def _report_fields(rows: Sequence[Row]) -> Iterator[FieldReport]:
    """Yields the fields of rows, those in objects too, in the order in which they come."""
    fields: dict[str, list[Any]] = {}
    for row in rows:
        for name, value in _flatten(row):
            fields.setdefault(name, []).append(value)
    for name, values in fields.items():
        lengths = [len(value) for value in values if isinstance(value, str)]
        filled = [value for value in values if value not in (None, "", [], {})]
        yield FieldReport(
            name=name,
            types=sorted({_TYPES.get(type(value), "object") for value in values}),
            filled=len(filled),
            example=str(filled[0])[:EXAMPLE_CHARACTERS] if filled else "",
            shortest=min(lengths, default=None),
            longest=max(lengths, default=None),
            mean=round(sum(lengths) / len(lengths)) if lengths else None,
        )


def _flatten(row: Row, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        yield f"{prefix}{name}", value
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{name}.")


def _cut(value: Any) -> Any:  # noqa: ANN401  # any JSON
    text = value if isinstance(value, str) else str(value)
    is_long = isinstance(value, str | dict | list) and len(text) > SHOWN_CHARACTERS
    return f"{text[:SHOWN_CHARACTERS]}…" if is_long else value

"""Data sets: what they look like, and cleaning them by default."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import anyio.to_thread
from pydantic import Field

from tools.core.context import RequestContext
from tools.core.errors import ToolError
from tools.core.spec import (
    Alias,
    Confirmation,
    Effect,
    Prepared,
    Subject,
    SubjectKind,
    ToolScope,
    tool,
)
from tools.data.answers.datasets import DatasetFields, DatasetInspection
from tools.data.answers.runs import CleanedDataset
from tools.data.applying import MOST_SECONDS, DryRun, Seconds

DatasetPath = Annotated[
    str,
    Field(
        min_length=1,
        max_length=4_096,
        description="A file (JSONL, JSON, CSV, TSV, Parquet; also .gz, .zst), or a folder of texts",
    ),
    Alias("dataset_path", "path"),
]
SampleSize = Annotated[int, Field(ge=1, le=200, description="Rows to look at")]


_LOOKS: Mapping[str, Any] = {
    "scope": ToolScope.SYSTEM,
    "effects": {Effect.READ},
    "idempotent": True,
    "tags": ("data",),
    "timeout": 120,
    "subject": Subject(SubjectKind.PATH, "dataset_source"),
}


@tool(**_LOOKS, capabilities=("look at a data set: rows, fields, texts, duplicates",))
async def inspect_dataset(
    context: RequestContext, dataset_source: DatasetPath, sample_size: SampleSize = 20
) -> DatasetInspection:
    """Tells form, size and fields of a data set, where its texts are, and its first rows."""
    from tools.data.running.looking import look_at

    return (await look_at(context, dataset_source, sample_size)).inspection


@tool(**_LOOKS, capabilities=("list the fields of a data set",))
async def list_dataset_fields(
    context: RequestContext, dataset_source: DatasetPath, sample_size: SampleSize = 200
) -> DatasetFields:
    """Lists the fields that rows of a data set have, those in objects too, with their types."""
    from tools.data.running.looking import look_at

    seen = await look_at(context, dataset_source, sample_size)
    return DatasetFields.from_attributes(seen.inspection)


async def _prepare(arguments: Mapping[str, Any], context: RequestContext) -> Prepared:
    """Adds the digest of what the call replaces, of which a person is asked if there is any."""
    from tools.data.running.cleaning import default_output, describe_replacing

    given = {name: value for name, value in arguments.items() if value is not None}
    if given["dry_run"] or not given["overwrite"]:
        return Prepared(given, "")
    source, sandbox = given["dataset_source"], context.sandbox
    try:
        output = given.get("output_path") or default_output(source)
        found = await anyio.to_thread.run_sync(describe_replacing, sandbox, source, output)
    except ToolError:
        return Prepared({**given, "digest": "unknown"}, "")  # with which nothing is replaced
    digest, shown = found
    if given.get("digest", digest) != digest:
        digest = "another"
    return Prepared({**given, "overwrite": bool(digest), "digest": digest}, shown)


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.WRITE, Effect.EXECUTE},
    destructive=True,  # with overwrite
    confirmation=Confirmation.REQUIRED,
    confirm_if="overwrite=true, dry_run=false",
    prepare=_prepare,
    tags=("data",),
    capabilities=("clean and deduplicate a data set by default", "convert a data set"),
    timeout=MOST_SECONDS + 60,
    may_become_job=True,
    in_cell=True,
    subject=Subject(SubjectKind.PATH, "dataset_source"),
)
async def clean_dataset(
    context: RequestContext,
    dataset_source: DatasetPath,
    output_path: Annotated[
        str | None,
        Field(
            max_length=4_096,
            pattern=r"\.(jsonl|json|parquet)$",
            description="JSONL, JSON or Parquet; default: NAME.clean.jsonl next to the source",
        ),
    ] = None,
    work: Annotated[
        list[Literal["clean", "dedupe", "dedupe_near"]] | None,
        Field(max_length=3, description="Default: clean and dedupe; [] only converts"),
    ] = None,
    text_key: Annotated[
        str | None, Field(max_length=256, description="Default: the field with the longest texts")
    ] = None,
    dry_run: DryRun = False,
    overwrite: Annotated[
        bool, Field(description="Replace existing files; the user is asked")
    ] = False,
    keep_stats: Annotated[bool, Field(description="Write what filters computed too")] = False,
    timeout_seconds: Seconds = 3_600,
    digest: Annotated[
        str | None, Field(max_length=64, description="Of the files to replace; leave it out")
    ] = None,
) -> CleanedDataset:
    """Mends texts of a data set and drops empty, garbled and repeated rows, with a report.

    Try it with dry_run first, and show the user what would go. The recipe is written next to
    the output: change it and run it with apply_recipe.
    """
    from tools.data.running.cleaning import DEFAULT_WORK, Cleaning, clean, default_output

    cleaning = Cleaning(
        source=dataset_source,
        output=output_path or default_output(dataset_source),
        work=DEFAULT_WORK if work is None else work,
        text_key=text_key,
        keep_stats=keep_stats,
        overwrite=overwrite,
        digest=digest,
        dry_run=dry_run,
    )
    return await clean(context, cleaning, timeout_seconds)

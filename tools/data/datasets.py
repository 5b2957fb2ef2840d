"""Data sets: what they look like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from tools.core.context import RequestContext
from tools.core.spec import Alias, Effect, Subject, SubjectKind, ToolScope, tool
from tools.data.answers.datasets import DatasetFields, DatasetInspection, fields_of, shown

__all__ = ["inspect_dataset", "list_dataset_fields"]

SHOWN_ROWS = 3

DatasetPath = Annotated[
    str,
    Field(
        min_length=1,
        max_length=4_096,
        description="A file (JSONL, JSON, CSV, TSV, Parquet), or a folder of texts",
    ),
    Alias("dataset_path", "path"),
]
SampleSize = Annotated[int, Field(ge=1, le=200, description="Rows to look at")]


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.READ},
    idempotent=True,
    tags=("data",),
    capabilities=("look at a data set: rows, fields, texts, duplicates",),
    timeout=120,
    subject=Subject(SubjectKind.PATH, "dataset_source"),
)
async def inspect_dataset(
    context: RequestContext, dataset_source: DatasetPath, sample_size: SampleSize = 20
) -> DatasetInspection:
    """Tells form, size and fields of a data set, where its texts are, and its first rows."""
    from tools.data.checks.rows import Rows
    from tools.data.running.looking import look_at

    seen = await look_at(context, dataset_source, sample_size)
    text_key = Rows(tuple(seen.rows), is_whole=False).longest_text()
    return DatasetInspection(
        path=dataset_source,
        form=seen.form,
        sampled=len(seen.rows),
        fields=fields_of(seen.rows),
        size=seen.size,
        files=seen.files,
        rows=seen.count,
        about_rows=seen.about,
        text_key=text_key,
        repeated=_repeated(seen.rows, text_key),
        sample=[shown(row) for row in seen.rows[:SHOWN_ROWS]],
    )


@tool(
    scope=ToolScope.SYSTEM,
    effects={Effect.READ},
    idempotent=True,
    tags=("data",),
    capabilities=("list the fields of a data set",),
    timeout=120,
    subject=Subject(SubjectKind.PATH, "dataset_source"),
)
async def list_dataset_fields(
    context: RequestContext, dataset_source: DatasetPath, sample_size: SampleSize = 200
) -> DatasetFields:
    """Lists the fields that rows of a data set have, those in objects too, with their types."""
    from tools.data.running.looking import look_at

    seen = await look_at(context, dataset_source, sample_size)
    return DatasetFields(
        path=dataset_source,
        form=seen.form,
        sampled=len(seen.rows),
        fields=fields_of(seen.rows),
    )


def _repeated(rows: Sequence[dict[str, Any]], text_key: str | None) -> int:
    texts = [row.get(text_key) for row in rows] if text_key is not None else []
    plain = [" ".join(text.split()).casefold() for text in texts if isinstance(text, str)]
    return len(plain) - len(set(plain))

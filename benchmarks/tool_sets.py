"""Sets of tools, questions and judgements, as `benchmarks.tool_retrieval` reads them."""

import csv
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.retrieval import Qrels, read_jsonl
from tools.retrieval import ToolRecord

JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
"""Names of Python's types, which some sets have, to those of JSON Schema."""


@dataclass(frozen=True, slots=True)
class ToolSet:
    """A set: tools, questions, and which tools answer them."""

    name: str
    records: Sequence[ToolRecord]
    queries: Mapping[str, str]
    qrels: Qrels


def read_sets(given: Sequence[Path], most: int | None) -> list[ToolSet]:
    """The sets that some folders are or hold, each with a sample of its queries.

    Args:
        given: The folders.
        most: Queries of each set at most; None takes all.

    Raises:
        SystemExit: If a folder is no set and holds none.
    """
    return [_read_set(folder, most) for path in given for folder in _folders(path)]


def _folders(path: Path) -> Iterator[Path]:
    inner = [path, *sorted(path.iterdir())] if path.is_dir() else []
    found = [each for each in inner if (each / "tools.jsonl").exists()]
    if not found:
        raise SystemExit(f"{path} has no tools.jsonl, nor has a folder in it.")
    yield from found


def _read_set(folder: Path, most: int | None) -> ToolSet:
    qrels: dict[str, dict[str, int]] = {}
    with (folder / "qrels.tsv").open(encoding="utf-8", newline="") as lines:
        for query, tool, grade in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            if grade.isdigit():  # a header is none
                qrels.setdefault(query, {})[tool] = int(grade)
    texts = {row["id"]: row["text"] for row in read_jsonl(folder / "queries.jsonl")}
    asked = [key for key in texts if key in qrels]
    if most is not None and most < len(asked):
        asked = random.Random(7).sample(asked, most)  # noqa: S311  # the same ones each time
    records = [_read_record(row) for row in read_jsonl(folder / "tools.jsonl")]
    return ToolSet(folder.name, records, {key: texts[key] for key in asked}, qrels)


def _read_record(row: Mapping[str, Any]) -> ToolRecord:
    parameters = row.get("parameters") or []
    schema = {
        "type": "object",
        "properties": {each["name"]: _property(each) for each in parameters},
        "required": [each["name"] for each in parameters if each.get("required")],
    }
    return ToolRecord(
        tool_id=row["id"],
        name=row["name"] or row["id"],
        description=row.get("description") or "",
        tags=tuple(row.get("tags") or ()),
        capabilities=tuple(row.get("capabilities") or ()),
        parameters=schema if parameters else None,
    )


def _property(parameter: Mapping[str, Any]) -> dict[str, str]:
    kind = JSON_TYPES.get(parameter.get("type") or "", parameter.get("type") or "string")
    return {"type": kind, "description": parameter.get("description") or ""}

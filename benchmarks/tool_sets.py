"""Sets of tools, questions and judgements, as `benchmarks.tool_retrieval` reads them."""

import csv
import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import server.app
from benchmarks.retrieval import Qrels, read_jsonl
from server.settings import Settings
from tools.retrieval import ToolRecord
from tools.retrieval.index_updates import record_of

HALVES = ("development", "held-out")

JSON_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
"""Names of Python's types, which some sets have, to those of JSON Schema."""


@dataclass(frozen=True, slots=True)
class ToolSet:
    """A set: tools, questions, and which tools answer them."""

    name: str
    records: Sequence[ToolRecord]
    queries: Mapping[str, str]
    qrels: Qrels


def read_sets(
    given: Sequence[Path], most: int | None = None, half: str | None = None
) -> list[ToolSet]:
    """The sets that some folders are or hold, each with a sample of its queries.

    Args:
        given: The folders.
        most: Queries of each set at most; None takes all.
        half: One of `HALVES`, by the SHA-256 of a query's text; None takes both.

    Raises:
        SystemExit: If a folder is no set and holds none.
    """
    return [_read_set(folder, most, half) for path in given for folder in _folders(path)]


def _folders(path: Path) -> Iterator[Path]:
    inner = [path, *sorted(path.iterdir())] if path.is_dir() else []
    found = [each for each in inner if (each / "tools.jsonl").exists()]
    if not found:
        raise SystemExit(f"{path} has no tools.jsonl, nor has a folder in it.")
    yield from found


def _read_set(folder: Path, most: int | None, half: str | None) -> ToolSet:
    qrels: dict[str, dict[str, int]] = {}
    with (folder / "qrels.tsv").open(encoding="utf-8", newline="") as lines:
        for query, tool, grade in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            if grade.isdigit():  # a header is none
                qrels.setdefault(query, {})[tool] = int(grade)
    texts = {row["id"]: row["text"] for row in read_jsonl(folder / "queries.jsonl")}
    asked = [key for key in texts if key in qrels and half in {None, half_of(texts[key])}]
    if most is not None and most < len(asked):
        asked = random.Random(7).sample(asked, most)  # noqa: S311  # the same ones each time
    records = [_read_record(row) for row in read_jsonl(folder / "tools.jsonl")]
    if (folder / "servers.tsv").exists():
        records += _own_records()
    return ToolSet(folder.name, records, {key: texts[key] for key in asked}, qrels)


def half_of(text: str) -> str:
    """The half of a set that a query belongs to, whatever else the set has."""
    return HALVES[sha256(text.encode()).digest()[0] % 2]


def _own_records() -> list[ToolRecord]:
    """Toolcrib's own tools as they are now."""
    with tempfile.TemporaryDirectory() as directory:
        registry = server.app.App(Settings(data_dir=Path(directory))).registry
        specs = map(registry.by_id, registry.changed_since(0))
        return [record_of(spec) for spec in specs if spec is not None]


def _read_record(row: Mapping[str, Any]) -> ToolRecord:
    parameters = row.get("parameters") or []
    schema = parameters if isinstance(parameters, dict) else _schema(parameters)
    return ToolRecord(
        tool_id=row["id"],
        name=row["name"] or row["id"],
        description=row.get("description") or "",
        tags=tuple(row.get("tags") or ()),
        capabilities=tuple(row.get("capabilities") or ()),
        parameters=schema if parameters else None,
        server=row.get("server") or "",
    )


def _schema(parameters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {each["name"]: _property(each) for each in parameters},
        "required": [each["name"] for each in parameters if each.get("required")],
    }


def _property(parameter: Mapping[str, Any]) -> dict[str, str]:
    kind = JSON_TYPES.get(parameter.get("type") or "", parameter.get("type") or "string")
    return {"type": kind, "description": parameter.get("description") or ""}

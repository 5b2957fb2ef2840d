"""Splits a data set into parts: rows with the same text come into the same part, in every run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Any

from tools.core.errors import InvalidArgumentsError
from tools.data.answers.runs import WrittenFile
from tools.data.answers.splits import PartReport, SplitReport
from tools.data.checks.rows import first_rows
from tools.data.running.cleaning import check_free, digest_of
from tools.data.split_recipe import ROWS, SplitRecipe
from tools.data.worker.entries import lines_of
from tools.sandbox.files.sandbox import Sandbox

SHOWN_LINES = 5
"""Numbers of lines that hold no row."""


def split(sandbox: Sandbox, recipe: SplitRecipe, *, overwrite: bool) -> SplitReport:
    """Writes each part beside the source, as NAME.PART.jsonl, with the recipe and a report; blocks.

    Of rows that were exported for it, NAME is that of the file they came from.

    The digest of a row's text decides its part, so that shares are met roughly, and no text is
    in two parts.

    Args:
        sandbox: The files.
        recipe: How it is split.
        overwrite: Whether files that are there are replaced.

    Raises:
        InvalidArgumentsError: If it is no JSONL file, or has no such texts.
        ToolError: As the methods of Sandbox; ConflictError where something is there.
    """
    path = PurePosixPath(recipe.source)
    whole = recipe.model_copy(update={"text_key": _text_key(sandbox, recipe)})
    parts = recipe.parts
    stem = path.stem.removesuffix(ROWS)
    targets = {part: str(path.with_name(f"{stem}.{part}.jsonl")) for part in parts}
    ends = ("recipe.yaml", "report.md", "report.json")
    beside = [str(path.with_name(f"{stem}.split.{end}")) for end in ends]
    if not overwrite:
        check_free(sandbox, [*targets.values(), *beside])
    shares = {part: share / sum(parts.values()) for part, share in parts.items()}
    made, broken = _dealt(_lines(sandbox, recipe.source), shares, whole)
    report = SplitReport(
        source=digest_of(sandbox, recipe.source),
        text_key=whole.text_key or "",
        seed=recipe.seed,
        rows=sum(map(len, made.values())),
        left_out=len(broken),
        broken=broken[:SHOWN_LINES],
        parts=[
            PartReport(
                part=part,
                share=shares[part],
                rows=len(lines),
                file=_written(sandbox, targets[part], lines),
            )
            for part, lines in made.items()
        ],
        recipe_path=beside[0],
        report_path=beside[1],
    )
    sandbox.write(beside[0], whole.to_yaml().encode())
    sandbox.write(beside[1], report.to_markdown())
    sandbox.write(beside[2], f"{report.model_dump_json(indent=2)}\n".encode())
    return report


def _text_key(sandbox: Sandbox, recipe: SplitRecipe) -> str:
    """The field whose texts decide the parts.

    Raises:
        InvalidArgumentsError: If there is none.
    """
    source = recipe.source
    rows = first_rows(sandbox, source) if PurePosixPath(source).suffix == ".jsonl" else None
    longest = None if rows is None else rows.text_key()
    if rows is None or longest is None:
        raise InvalidArgumentsError(
            f"{source} is no JSONL file with texts.",
            next_actions=["Write it as one first: `toolcrib data export FILE --to jsonl`."],
        )
    if recipe.text_key is not None and recipe.text_key not in rows.keys:
        raise InvalidArgumentsError(
            f"No row of {source} has a field {recipe.text_key!r}.", suggestions=rows.keys[:20]
        )
    return recipe.text_key or longest


def _dealt(
    lines: Iterator[bytes], shares: Mapping[str, float], recipe: SplitRecipe
) -> tuple[dict[str, list[bytes]], list[int]]:
    """The lines of each part, and the numbers from 1 of those that hold no row."""
    made: dict[str, list[bytes]] = {part: [] for part in shares}
    bounds = list(zip(shares, accumulate(shares.values()), strict=True))
    broken = []
    for line in lines_of(lines):
        if line.row is None:
            broken.append(line.number + 1)
            continue
        place = _place(_text(line.row, line.content, recipe.text_key), recipe.seed)
        part = next((part for part, bound in bounds if place < bound), bounds[-1][0])
        made[part].append(line.content)
    return made, broken


def _written(sandbox: Sandbox, path: str, lines: list[bytes]) -> WrittenFile:
    done = sandbox.write(path, b"".join(line + b"\n" for line in lines))
    return WrittenFile(path=path, size=done.size, sha256=done.sha256)


def _lines(sandbox: Sandbox, source: str) -> Iterator[bytes]:
    with sandbox.open_read(source) as file:
        rest = b""
        while piece := file.read(1 << 20):
            *lines, rest = (rest + piece).split(b"\n")
            yield from lines
        yield rest


def _text(row: Mapping[Any, Any], line: bytes, key: str | None) -> str:
    """The text of a row, or the whole row where it has none."""
    return " ".join(str(row.get(key, "")).split()).casefold() or line.decode(errors="replace")


def _place(text: str, seed: int) -> float:
    """A number from 0 to 1 that is the same for the same text."""
    digest = hashlib.sha256(f"{seed}:{text}".encode(errors="replace")).digest()
    return int.from_bytes(digest[:7]) / (1 << 56)

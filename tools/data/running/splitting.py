"""Splits a data set into parts: rows with the same text come into the same part, in every run."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Any

from tools.core.errors import ConflictError, InvalidArgumentsError
from tools.data.answers.runs import PartReport, SplitReport
from tools.data.checks.dataset import find_overlap
from tools.data.checks.rows import first_rows
from tools.data.running.outputs import check_free, digest_of, find_outputs
from tools.data.split_recipe import ROWS, SplitRecipe
from tools.data.worker.agreed import AGAIN
from tools.data.worker.entries import DamagedError, lines_of, open_lines
from tools.data.worker.texts import fields_of, joined, values_of
from tools.sandbox.files.sandbox import Sandbox

SHOWN_LINES = 5
"""Numbers of lines that hold no row."""


def split(sandbox: Sandbox, recipe: SplitRecipe, *, overwrite: bool) -> SplitReport:
    """Writes the parts next to the source, as NAME.PART.jsonl, with recipe and report; blocks.

    Of rows that were exported for it, NAME is that of the file they came from. The digest of a
    row's text decides its part, so shares are met roughly, and no text is in two parts.
    """
    path = PurePosixPath(recipe.source)
    whole = recipe.model_copy(update={"text_key": _text_key(sandbox, recipe)})
    stem = path.stem.removesuffix(ROWS)
    targets = {part: str(path.with_name(f"{stem}.{part}.jsonl")) for part in recipe.parts}
    recipe_path, report_path = (
        str(path.with_name(f"{stem}.split.{end}")) for end in ("recipe.yaml", "report.md")
    )
    for target in targets.values():
        if find_overlap(sandbox, target, [recipe.source]):
            raise ConflictError(
                f"{target} is what is split; it is never replaced.",
                next_actions=["Give the part another name."],
            )
    paths = [*targets.values(), recipe_path, report_path]
    if not overwrite:
        check_free(sandbox, paths)
    outputs = find_outputs(sandbox, paths)
    shares = {part: share / sum(recipe.parts.values()) for part, share in recipe.parts.items()}
    made, broken = _deal(_lines(sandbox, recipe.source), shares, whole)
    content = {part: b"".join(line + b"\n" for line in lines) for part, lines in made.items()}
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
                file=outputs.write(sandbox, targets[part], content[part]),
            )
            for part, lines in made.items()
        ],
        recipe_path=recipe_path,
        report_path=report_path,
    )
    outputs.write(sandbox, recipe_path, whole.to_yaml().encode())
    outputs.write(sandbox, report_path, report.to_markdown())
    return report


def _text_key(sandbox: Sandbox, recipe: SplitRecipe) -> str:
    source = recipe.source
    rows = first_rows(sandbox, source) if PurePosixPath(source).suffix == ".jsonl" else None
    longest = None if rows is None else rows.text_key()
    if rows is None or longest is None:
        raise InvalidArgumentsError(
            f"{source} is not a JSONL file with texts.",
            next_actions=["Write it as one first: `toolcrib data export FILE --to jsonl`."],
        )
    if recipe.text_key is not None and fields_of(recipe.text_key, rows.keys) is None:
        raise InvalidArgumentsError(
            f"No row of {source} has a field {recipe.text_key!r}.", suggestions=rows.keys[:20]
        )
    return recipe.text_key or longest


def _deal(
    lines: Iterator[bytes], shares: Mapping[str, float], recipe: SplitRecipe
) -> tuple[dict[str, list[bytes]], list[int]]:
    """Returns the lines of each part, and the numbers from 1 of those that hold no row."""
    made: dict[str, list[bytes]] = {part: [] for part in shares}
    bounds = list(zip(shares, accumulate(shares.values()), strict=True))
    broken = []
    for line in lines_of(lines):
        if line.row is None:
            broken.append(line.number + 1)
            continue
        place = _place(_text(line.row, line.content, recipe.text_key), recipe.seed)
        part = next((part for part, bound in bounds if place < bound), bounds[-1][0])
        made[part].append(line.content.removesuffix(b"\n"))
    return made, broken


def _lines(sandbox: Sandbox, source: str) -> Iterator[bytes]:
    with sandbox.open_read(source) as file:
        try:
            yield from open_lines(file, source)
        except DamagedError as error:
            raise InvalidArgumentsError(f"{source}: {error}.", next_actions=[AGAIN]) from error


def _text(row: Mapping[Any, Any], line: bytes, key: str | None) -> str:
    """Returns the text of a row, or the whole row where it has none."""
    text = joined(values_of(row, key)) if key is not None else ""
    return " ".join(text.split()).casefold() or line.decode(errors="replace").strip()


def _place(text: str, seed: int) -> float:
    """Returns a number from 0 to 1 that is the same for the same text."""
    digest = hashlib.sha256(f"{seed}:{text}".encode(errors="replace")).digest()
    return int.from_bytes(digest[:7]) / (1 << 56)

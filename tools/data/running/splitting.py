"""Splits a data set into parts by a recipe that is written and can be run again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Annotated, Self

from pydantic import AfterValidator, Field

from tools.core.errors import InvalidArgumentsError
from tools.core.result import ToolModel
from tools.core.unicode_safety import visible_controls
from tools.data.answers.runs import WrittenFile, markdown_table
from tools.data.checks.dataset import check_apart
from tools.data.checks.rows import first_rows
from tools.data.recipe import Key, as_yaml, explain_faults, read_plain_yaml
from tools.data.running.outputs import check_free, digest_of, find_outputs
from tools.data.worker.agreed import AGAIN
from tools.data.worker.entries import DamagedError, Entry, lines_of, open_lines
from tools.data.worker.texts import fields_of, joined, values_of
from tools.sandbox.files.sandbox import Sandbox

ROWS = ".rows"  # ends the stem of a file with rows that were exported to be split
SHOWN_LINES = 5
_COMMENT = "# Run it again with `toolcrib data split --recipe` and the name of this file.\n"


def check_parts(parts: Mapping[str, float]) -> Mapping[str, float]:
    """Checks that several shares add up to 1, within rounding; a ValueError suggests others."""
    total = sum(parts.values())
    if len(parts) > 1 and round(total, 2) == 1:
        return parts
    if len(parts) > 1:
        better = ",".join(f"{name}={share / total:.3g}" for name, share in parts.items())
        raise ValueError(f"the shares add up to {total:g}, not to 1; for example {better}")
    name, share = next(
        ((name, share) for name, share in parts.items() if share < 1), ("train", 0.9)
    )
    example = f"{name}={share:g},rest={1 - share:g}"
    raise ValueError(f"a split has two parts or more; for example {example}")


Name = Annotated[str, Field(max_length=64, pattern=r"^[^\W\d]\w*$")]
Share = Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)]


class SplitRecipe(ToolModel, extra="forbid"):
    """How a JSONL file is split; without `text_key` the field with the longest texts decides."""

    source: Annotated[str, Field(min_length=1, max_length=4_096)]
    text_key: Key | None = None
    seed: int = 0
    parts: Annotated[dict[Name, Share], Field(max_length=100), AfterValidator(check_parts)]

    def to_yaml(self) -> str:
        """Returns the file that `from_yaml` reads."""
        return f"{_COMMENT}{as_yaml(self.model_dump(exclude_none=True))}"

    @classmethod
    def from_yaml(cls, text: str, name: str = "This") -> Self:
        """Reads a recipe of a split; an error names the wrong key."""
        next_action = "Correct it, or run `toolcrib data split` to write it again."
        with explain_faults(f"{name} is not a recipe of a split", next_action):
            return cls.model_validate(read_plain_yaml(text))


class PartReport(ToolModel):
    """A part: its name, the share that it was to have, and the rows that it has."""

    part: str
    share: float
    rows: int
    file: WrittenFile


class SplitReport(ToolModel):
    """What came of a split; `broken` has the numbers of the first lines that hold no row."""

    source: WrittenFile
    text_key: str
    seed: int
    rows: int
    left_out: int
    broken: list[int]
    parts: list[PartReport]
    recipe_path: str
    report_path: str

    @property
    def notes(self) -> Iterator[str]:
        """Yields notes on what a user may not expect."""
        if self.left_out:
            first = ", ".join(map(str, self.broken))
            yield f"Lines that hold no row were left out: {self.left_out}; the first: {first}."
        far = [
            f"{each.part} has {each.rows} for {each.share:.0%}"
            for each in self.parts
            if abs(each.rows - each.share * self.rows) > each.share * self.rows / 2
        ]
        if far:
            yield (
                "Shares are met roughly, since texts decide the parts, and these"
                f" {self.rows} rows have few different ones: {', '.join(far)}."
            )

    def to_text(self) -> str:
        """Returns a line for each part, then the notes and where recipe and report are."""
        lines = [f"{each.file.to_text()} {each.rows} rows." for each in self.parts]
        lines += [f"Note: {note}" for note in self.notes]
        lines.append(f"Recipe: {self.recipe_path}. Report: {self.report_path}.")
        return visible_controls("\n".join(lines))

    def to_markdown(self) -> bytes:
        """Returns the report as a file for people."""
        source = f"Read {self.source.size} bytes, SHA-256 `{self.source.sha256}`."
        decided = f"The texts in `{self.text_key}` decided the parts, with the seed {self.seed}."
        rows = [(f"{each.share:.1%}", each.rows, *each.file.cells()) for each in self.parts]
        lines = [
            f"# {self.source.path}\n",
            f"{self.rows} rows in {len(self.parts)} parts.\n",
            *markdown_table(("share", "rows", "file", "bytes", "SHA-256"), rows),
            f"\n{source} {decided}",
            *(f"\n{note}" for note in self.notes),
        ]
        return (visible_controls("\n".join(lines)) + "\n").encode()


def split(sandbox: Sandbox, recipe: SplitRecipe, *, overwrite: bool) -> SplitReport:
    """Writes the parts next to the source, as NAME.PART.jsonl, with recipe and report; blocks.

    Of rows that were exported for it, NAME is that of the file they came from. The digest of a
    row's text decides its part, so shares are met roughly, and no text is in two parts.
    """
    source = PurePosixPath(recipe.source)
    text_key = _find_text_key(sandbox, recipe)
    stem = source.stem.removesuffix(ROWS)
    targets = {part: str(source.with_name(f"{stem}.{part}.jsonl")) for part in recipe.parts}
    recipe_path = str(source.with_name(f"{stem}.split.recipe.yaml"))
    report_path = str(source.with_name(f"{stem}.split.report.md"))
    check_apart(sandbox, targets.values(), recipe.source, "Give the part another name.")
    paths = [*targets.values(), recipe_path, report_path]
    if not overwrite:
        check_free(sandbox, paths)
    outputs = find_outputs(sandbox, paths)
    total = sum(recipe.parts.values())
    shares = {part: share / total for part, share in recipe.parts.items()}
    bounds = list(zip(shares, accumulate(shares.values()), strict=True))
    lines: dict[str, list[bytes]] = {part: [] for part in shares}
    broken = []
    for line in _read_lines(sandbox, recipe.source):
        if line.row is None:
            broken.append(line.number + 1)
            continue
        place = _place(line, text_key, recipe.seed)
        part = next((part for part, bound in bounds if place < bound), bounds[-1][0])
        lines[part].append(line.content.removesuffix(b"\n") + b"\n")
    report = SplitReport(
        source=digest_of(sandbox, recipe.source),
        text_key=text_key,
        seed=recipe.seed,
        rows=sum(map(len, lines.values())),
        left_out=len(broken),
        broken=broken[:SHOWN_LINES],
        parts=[
            PartReport(
                part=part,
                share=share,
                rows=len(lines[part]),
                file=outputs.write(sandbox, targets[part], b"".join(lines[part])),
            )
            for part, share in shares.items()
        ],
        recipe_path=recipe_path,
        report_path=report_path,
    )
    whole = recipe.model_copy(update={"text_key": text_key})
    outputs.write(sandbox, recipe_path, whole.to_yaml().encode())
    outputs.write(sandbox, report_path, report.to_markdown())
    return report


def _find_text_key(sandbox: Sandbox, recipe: SplitRecipe) -> str:
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


def _read_lines(sandbox: Sandbox, source: str) -> Iterator[Entry]:
    with sandbox.open_read(source) as file:
        try:
            yield from lines_of(open_lines(file, source))
        except DamagedError as error:
            raise InvalidArgumentsError(f"{source}: {error}.", next_actions=[AGAIN]) from error


def _place(line: Entry, text_key: str, seed: int) -> float:
    """Returns a number from 0 to 1 that is the same for the same text, or else the same row."""
    text = " ".join(joined(values_of(line.row or {}, text_key)).split()).casefold()
    decides = text or line.content.decode(errors="replace").strip()
    digest = hashlib.sha256(f"{seed}:{decides}".encode(errors="replace")).digest()
    return int.from_bytes(digest[:7]) / (1 << 56)

"""What came of splitting a data set: each part with its rows, and what was left out."""

from __future__ import annotations

from collections.abc import Iterator

from tools.core.invisible import visible_controls
from tools.core.result import ToolModel
from tools.data.answers.runs import WrittenFile


class PartReport(ToolModel):
    """One part.

    Attributes:
        part: Its name.
        share: The share of rows that it was to have, up to 1.
        rows: The rows that it has.
        file: Where they are.
    """

    part: str
    share: float
    rows: int
    file: WrittenFile


class SplitReport(ToolModel):
    """What came of a split.

    Attributes:
        source: What was read.
        text_key: The field whose texts decided the parts.
        seed: That of the run.
        rows: Rows in all parts.
        left_out: How many lines hold no row, and are in no part.
        broken: The numbers of the first of them, from 1.
        parts: The parts.
        recipe_path: Where that is which was run.
        report_path: Where this is, as Markdown, with JSON beside it.
    """

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
        """What somebody may not expect."""
        if self.left_out:
            first = ", ".join(map(str, self.broken))
            yield f"Lines that hold no row were left out: {self.left_out}; the first: {first}."
        far = [each for each in self.parts if _is_far(each, self.rows)]
        if far:
            shares = ", ".join(f"{each.part} has {each.rows} for {each.share:.0%}" for each in far)
            yield (
                "Shares are met roughly, since texts decide the parts, and these"
                f" {self.rows} rows have few different ones: {shares}."
            )

    def to_text(self) -> str:
        """A line for each part, then the notes and where recipe and report are."""
        lines = [
            f"Wrote {each.file.path}: {each.rows} rows, {each.file.size} bytes."
            for each in self.parts
        ]
        lines += [f"Note: {note}" for note in self.notes]
        lines.append(f"Recipe: {self.recipe_path}. Report: {self.report_path}.")
        return visible_controls("\n".join(lines))

    def to_markdown(self) -> bytes:
        """The report for people."""
        lines = [f"# {self.source.path}", "", f"{self.rows} rows in {len(self.parts)} parts.", ""]
        lines += ["| file | share | rows | bytes | SHA-256 |", "|---|---|---|---|---|"]
        lines += [
            f"| {each.file.path} | {each.share:.1%} | {each.rows} | {each.file.size}"
            f" | `{each.file.sha256}` |"
            for each in self.parts
        ]
        source = f"Read {self.source.size} bytes, SHA-256 `{self.source.sha256}`."
        decided = f"The texts in `{self.text_key}` decided the parts, with the seed {self.seed}."
        lines += ["", f"{source} {decided}", *(f"\n{note}" for note in self.notes)]
        return (visible_controls("\n".join(lines)) + "\n").encode()


def _is_far(part: PartReport, rows: int) -> bool:
    """Whether a part has less than half, or more than one and a half, of what it was to have."""
    wanted = part.share * rows
    return abs(part.rows - wanted) > wanted / 2

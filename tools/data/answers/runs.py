"""What came of a run: rows in and out, which operator dropped how many, and what was written."""

from __future__ import annotations

from typing import Literal

from tools.core.invisible import visible_controls
from tools.core.result import OmitNone, ToolModel

SHOWN_FILES = 10
"""Files that the text names."""


class StepReport(ToolModel):
    """What one operator did.

    Attributes:
        operator: Its name; "(no text)" for rows that have no text, which are never read, and
            "(not readable)" for lines of JSONL that hold no row.
        rows_in: Rows before it.
        rows_out: Rows after it.
        seconds: How long it took.
        failed: Batches or rows that it skipped because of an error.
        errors: The first of these errors.
    """

    operator: str
    rows_in: int
    rows_out: int
    seconds: float
    failed: int
    errors: list[str]


class ShownRow(ToolModel):
    """A row that was kept, or dropped.

    Attributes:
        row: Its number in what was read, from 1; its line where some are not readable.
        text: How its text began, before any operator.
        operator: What dropped it; absent where it was kept.
    """

    row: int
    text: str
    operator: OmitNone[str] = None


class WrittenFile(ToolModel):
    """A file that was written.

    Attributes:
        path: As the recipe names it.
        size: Bytes.
        sha256: Digest of its content.
    """

    path: str
    size: int
    sha256: str


class RunReport(ToolModel):
    """What came of a run.

    Attributes:
        dry_run: Whether nothing was written, and only the first rows were read.
        engine: Whether the operators were called directly, or `dj-process` ran the recipe.
        rows_in: Rows that were read.
        rows_out: Rows that are left.
        steps: What each operator did, in order.
        kept: Some rows that are left.
        dropped: Some rows that are not, with the operator that dropped each.
        written: The files that were written.
        went_on_after: The last operator that was not run again, since an earlier run of the same
            had kept what it left; absent where all were run.
    """

    dry_run: bool
    engine: Literal["direct", "dj-process", "ray"]
    rows_in: int
    rows_out: int
    steps: list[StepReport]
    kept: list[ShownRow]
    dropped: list[ShownRow]
    written: list[WrittenFile]
    went_on_after: OmitNone[str] = None

    def to_text(self) -> str:
        """A line for the whole, one for each operator, and one for each row that is shown."""
        what = "A try on the first rows" if self.dry_run else "Done"
        lines = [f"{what}: {self.rows_in} rows in, {self.rows_out} out."]
        if self.went_on_after is not None:
            lines.append(f"Went on after {self.went_on_after}, from where an earlier run ended.")
        for step in self.steps:
            lines.append(f"- {step.operator}: {step.rows_in} -> {step.rows_out}")
            if step.failed:
                lines.append(f"  skipped {step.failed} because of errors: {'; '.join(step.errors)}")
        lines += [f"dropped by {row.operator}: {_line(row)}" for row in self.dropped]
        lines += [f"kept: {_line(row)}" for row in self.kept]
        lines += [f"Wrote {each.path}, {each.size} bytes." for each in self.written[:SHOWN_FILES]]
        if len(self.written) > SHOWN_FILES:
            lines.append(f"Wrote {len(self.written) - SHOWN_FILES} more.")
        if self.dry_run:
            lines.append("Nothing was written: this was a dry run.")
        return "\n".join(lines)


class CleanedDataset(RunReport):
    """What came of cleaning a data set.

    Attributes:
        recipe: The recipe that was run, which apply_recipe runs again.
        recipe_path: Where it was written; absent in a dry run.
        report_path: Where the report is, as Markdown, with JSON and a chart beside it.
    """

    recipe: str
    recipe_path: OmitNone[str] = None
    report_path: OmitNone[str] = None

    def to_text(self) -> str:
        """The run, then where recipe and report are; of a dry run the recipe itself."""
        told = super().to_text()
        if self.recipe_path is None:
            return f"{told}\nThe recipe:\n{self.recipe}"
        return f"{told}\nRecipe: {self.recipe_path}. Report: {self.report_path}."


def _line(row: ShownRow) -> str:
    text = visible_controls(" ".join(row.text.split()))
    return f"row {row.row}: {text or '(empty)'}"

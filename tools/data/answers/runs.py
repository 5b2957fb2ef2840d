"""Reports of runs: rows in and out, dropped rows and written files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import field_validator

from tools.core.result import OmitNone, ToolModel
from tools.core.unicode_safety import visible_controls
from tools.data.release import VERSION

SHOWN_FILES = 10

_LOGGED = re.compile(r"^.*?An error occurred (?:during Op \[\w+\]|in \w+):?\s*", re.DOTALL)
_TRACE = re.compile(r"\s*(?:--\s*)?(?:Traceback \(most recent call last\).*|--)\s*$", re.DOTALL)


class StepReport(ToolModel):
    """What one operator did.

    Attributes:
        operator: Its name; "(no text)" and "(not readable)" count what no operator reads.
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

    @field_validator("errors")
    @classmethod
    def _without_log(cls, errors: list[str]) -> list[str]:
        """Keeps the error's own text of a line that Data-Juicer logged."""
        plain = (_TRACE.sub("", _LOGGED.sub("", each)) for each in errors)
        return [each or "no reason was given" for each in plain]

    def skipped(self) -> str:
        """Returns how many batches or rows it skipped, and why."""
        what = "batch or row" if self.failed == 1 else "batches or rows"
        return f"skipped {self.failed} {what} because of errors: {'; '.join(self.errors)}"


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

    def to_text(self) -> str:
        """Returns its number and text in one line."""
        text = visible_controls(" ".join(self.text.split()))
        return f"row {self.row}: {text or '(empty)'}"


class WrittenFile(ToolModel):
    """A file that was written.

    Attributes:
        path: As the recipe names it.
        size: Bytes.
        sha256: Digest of its content.
        not_kept: Why `undo` cannot bring back what it held before; absent where it can.
    """

    path: str
    size: int
    sha256: str
    not_kept: OmitNone[str] = None

    def to_text(self) -> str:
        """Returns a line for it."""
        lost = f" This cannot be undone ({self.not_kept})." if self.not_kept else ""
        return f"Wrote {self.path}, {self.size} bytes.{lost}"

    def cells(self) -> tuple[object, ...]:
        """Returns its cells in a table of Markdown."""
        return self.path.replace("|", "\\|"), self.size, f"`{self.sha256}`"


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
        went_on_after: The last operator that an earlier run had done; absent where all were run.
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
        """Returns a line for the whole, one for each operator, and one for each row shown."""
        what = "A try on the first rows" if self.dry_run else "Done"
        lines = [f"{what}: {self.rows_in} rows in, {self.rows_out} out."]
        if self.went_on_after is not None:
            lines.append(f"Went on after {self.went_on_after}, from where an earlier run ended.")
        for step in self.steps:
            lines.append(f"- {step.operator}: {step.rows_in} -> {step.rows_out}")
            if step.failed:
                lines.append(f"  {step.skipped()}")
        lines += [f"dropped by {row.operator}: {row.to_text()}" for row in self.dropped]
        lines += [f"kept: {row.to_text()}" for row in self.kept]
        lines += [each.to_text() for each in self.written[:SHOWN_FILES]]
        if len(self.written) > SHOWN_FILES:
            lines.append(f"Wrote {len(self.written) - SHOWN_FILES} more.")
        if self.dry_run:
            lines.append("Nothing was written: this was a dry run.")
        return "\n".join(lines)

    def to_markdown(self, source: WrittenFile, recipe: str) -> bytes:
        """Returns the report as a file for people, of a run of `recipe` on `source`."""
        files = [each.cells() for each in (source, *self.written)]
        steps = [
            (each.operator, each.rows_in, each.rows_out, each.rows_in - each.rows_out)
            for each in self.steps
        ]
        lines = [f"# {source.path}", "", f"{self.rows_in} rows in, {self.rows_out} rows out.", ""]
        lines += markdown_table(("file", "bytes", "SHA-256"), files)
        lines += ["", f"Run with Data-Juicer {VERSION} by the recipe `{recipe}`.", ""]
        if self.went_on_after is not None:
            lines += [f"This run went on after `{self.went_on_after}` of an earlier one.", ""]
        lines += markdown_table(("operator", "rows in", "rows out", "dropped"), steps)
        lines += [
            f"\n{each.operator} {_quote(each.skipped())}" for each in self.steps if each.failed
        ]
        lines += ["", "## Some rows that were dropped", ""]
        lines += [f"- row {row.row}, by {row.operator}: {_quote(row.text)}" for row in self.dropped]
        lines += ["", "## Some rows that were kept", ""]
        lines += [f"- row {row.row}: {_quote(row.text)}" for row in self.kept]
        return ("\n".join(lines) + "\n").encode()


class CleanedDataset(RunReport):
    """What came of cleaning a data set.

    Attributes:
        recipe: The recipe that was run, which apply_recipe runs again.
        recipe_path: Where it was written; absent in a dry run.
        report_path: Where the report is, as Markdown.
    """

    recipe: str
    recipe_path: OmitNone[str] = None
    report_path: OmitNone[str] = None

    def to_text(self) -> str:
        """Returns the run, then where recipe and report are; of a dry run the recipe itself."""
        run = super().to_text()
        if self.recipe_path is None:
            return f"{run}\nThe recipe:\n{self.recipe}"
        return f"{run}\nRecipe: {self.recipe_path}. Report: {self.report_path}."


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Returns the lines of a table of Markdown."""
    return [
        f"| {' | '.join(header)} |",
        f"{'|---' * len(header)}|",
        *(f"| {' | '.join(map(str, row))} |" for row in rows),
    ]


def _quote(text: str) -> str:
    """Returns a text that is nothing but text in Markdown."""
    plain = visible_controls(" ".join(text.split())).replace("`", "'")
    return f"`{plain}`" if plain else "(empty)"

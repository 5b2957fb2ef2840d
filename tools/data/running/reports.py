"""The report of a run: every row that was read is in the result, or with what dropped it."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from tools.core.invisible import visible_controls
from tools.data.answers.runs import RunReport, WrittenFile
from tools.data.release import VERSION

_ROW, _BAR, _LEFT, _WIDTH = 26, 420, 260, 780
"""Pixels: height of a row, of the longest bar, left of the bars, and of the whole."""


def reconciled(report: RunReport) -> list[tuple[str, int]]:
    """Where the rows went that were read: how many are left, then how many each operator dropped.

    Their sum is what was read; operators that make rows of others have negative numbers.
    """
    steps = [(step.operator, step.rows_in - step.rows_out) for step in report.steps]
    return [("kept", report.rows_out), *(each for each in steps if each[1])]


def to_json(report: RunReport, source: WrittenFile, recipe: str) -> bytes:
    """The report for programs.

    Args:
        report: What came of the run.
        source: What was read.
        recipe: Where the recipe is that was run.
    """
    said: dict[str, Any] = {
        "data_juicer": VERSION,
        "source": source.model_dump(),
        "recipe": recipe,
        "balance": [{"what": what, "rows": rows} for what, rows in reconciled(report)],
        **report.model_dump(exclude={"dry_run"}),
    }
    return json.dumps(said, ensure_ascii=False, indent=2).encode() + b"\n"


def to_markdown(report: RunReport, source: WrittenFile, recipe: str, chart: str) -> bytes:
    """The report for people.

    Args:
        report: What came of the run.
        source: What was read.
        recipe: Where the recipe is that was run.
        chart: Where the chart is.
    """
    lines = [f"# {source.path}", "", f"{report.rows_in} rows in, {report.rows_out} rows out.", ""]
    lines += [f"![Rows]({chart})", "", "| file | bytes | SHA-256 |", "|---|---|---|"]
    files = [source, *report.written]
    lines += [f"| {_cell(each.path)} | {each.size} | `{each.sha256}` |" for each in files]
    lines += ["", f"Run with Data-Juicer {VERSION} by the recipe `{recipe}`.", ""]
    if report.went_on_after is not None:
        after = f"This run went on after `{report.went_on_after}`, from where an earlier one ended."
        lines += [after, ""]
    lines += ["| operator | rows in | rows out | dropped | skipped by errors |"]
    lines += ["|---|---|---|---|---|"]
    lines += [
        f"| {step.operator} | {step.rows_in} | {step.rows_out} | {step.rows_in - step.rows_out}"
        f" | {step.failed} |"
        for step in report.steps
    ]
    errors = [(step.operator, error) for step in report.steps for error in step.errors]
    if errors:
        lines += ["", "## The first errors", ""]
        lines += [f"- {operator}: {_plain(error)}" for operator, error in errors]
    lines += ["", "## Some rows that were dropped", ""]
    lines += [f"- row {row.row}, by {row.operator}: {_plain(row.text)}" for row in report.dropped]
    lines += ["", "## Some rows that were kept", ""]
    lines += [f"- row {row.row}: {_plain(row.text)}" for row in report.kept]
    return ("\n".join(lines) + "\n").encode()


def to_svg(report: RunReport) -> bytes:
    """A bar for the rows that are left, and one for those that each operator dropped."""
    bars = [(what, max(rows, 0)) for what, rows in reconciled(report)]
    most = max((rows for _, rows in bars), default=0) or 1
    height = _ROW * len(bars) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}">',
        '<g font-family="sans-serif" font-size="13">',
        f"<title>{report.rows_in} rows in, {report.rows_out} out</title>",
    ]
    for place, (what, rows) in enumerate(bars):
        top = 5 + place * _ROW
        colour = "#2a7f62" if place == 0 else "#b5533c"
        wide = round(_BAR * rows / most, 1)
        parts += [
            f'<text x="{_LEFT - 8}" y="{top + 15}" text-anchor="end">{escape(what)}</text>',
            f'<rect x="{_LEFT}" y="{top}" width="{wide}" height="{_ROW - 6}" fill="{colour}"/>',
            f'<text x="{_LEFT + wide + 6}" y="{top + 15}">{rows}</text>',
        ]
    return "\n".join([*parts, "</g>\n</svg>\n"]).encode()


def _plain(text: str) -> str:
    """A text that is nothing but text in Markdown."""
    plain = visible_controls(" ".join(text.split())).replace("`", "'")
    return f"`{plain}`" if plain else "(empty)"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

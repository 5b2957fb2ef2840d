"""Findings of `toolcrib doctor`, and their output on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from server.mcp.visible import visible

SUBJECT_COLUMNS = 17


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    subject: str
    ok: bool | None  # whether it works; None if there is nothing to judge
    detail: str
    commands: tuple[str, ...] = ()  # commands that fix it, to be typed literally


def run_check(subject: str, look: Callable[[], str | Finding]) -> Finding:
    """Runs a check; an exception becomes the finding."""
    try:
        seen = look()
        return seen if isinstance(seen, Finding) else Finding(subject, ok=True, detail=seen)
    except Exception as error:  # noqa: BLE001  # every error is the finding
        advice = getattr(error, "suggestions", ())
        detail = " ".join([str(error) or type(error).__name__, *advice])
        return Finding(subject, ok=False, detail=detail)


def show(finding: Finding) -> None:
    """Prints a finding as a row; a subject wider than its column gets its own line."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    mark, style = {True: ("ok", "green"), False: ("fails", "red"), None: ("", "")}[finding.ok]
    console = Console()
    subject = visible(finding.subject)
    if len(subject) > SUBJECT_COLUMNS:
        console.print(Text(subject))
        subject = ""
    row = Table.grid(padding=(0, 2))
    row.add_column(width=SUBJECT_COLUMNS)
    row.add_column(width=5)
    row.add_column(overflow="fold")
    row.add_row(Text(subject), Text(mark, style), Text(visible(finding.detail)))
    console.print(row)
    for command in finding.commands:  # from the first column, so that it can be copied
        console.print(Text(f"\n{command}\n"), soft_wrap=True)

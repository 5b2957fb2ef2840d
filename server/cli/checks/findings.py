"""What `toolcrib doctor` found, and how it looks on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from server.mcp.visible import visible

SUBJECT_COLUMNS = 17


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: What.
        ok: Whether it works; None where there is nothing to judge.
        detail: What was seen.
        commands: What to type so that it works, word for word.
    """

    subject: str
    ok: bool | None
    detail: str
    commands: tuple[str, ...] = ()


def judged(subject: str, look: Callable[[], str | Finding]) -> Finding:
    """What a look saw; whatever it raises is the finding."""
    try:
        seen = look()
        return seen if isinstance(seen, Finding) else Finding(subject, ok=True, detail=seen)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is the finding
        advice = getattr(error, "suggestions", ())
        detail = " ".join([str(error) or type(error).__name__, *advice])
        return Finding(subject, ok=False, detail=detail)


def show(finding: Finding) -> None:
    """Prints a finding as a row; a subject that is wider than its column has a line of its own."""
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
    for command in finding.commands:  # from the first column on, to be copied as it is
        console.print(Text(f"\n{command}\n"), soft_wrap=True)

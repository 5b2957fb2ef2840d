"""Shows the user what is in quarantine, and records approvals."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime

import typer

from server.cli.gateway.inspection import Inspected, Quarantined
from server.cli.invocation import invocation
from server.cli.terminal.screen import echo, forget_typed, wrapped
from server.mcp.visible import visible
from server.upstream.safety.pins import difference, lines
from storage.approvals import ApprovalStore
from storage.catalog.catalog import Pins


def check_person() -> None:
    """Exits unless stdin is a terminal: an agent's shell has none, and only people may approve."""
    if not sys.stdin.isatty():
        echo("Approving tools requires an interactive terminal.", err=True)
        raise typer.Exit(1)


def review(seen: Inspected, pins: Pins) -> None:
    """Shows each tool and skill in quarantine, the reasons, and its definition or changes."""
    _say_how(seen)
    for each in seen.quarantined:
        _show(each, pins)
    if seen.quarantined:
        command = f"{invocation()} servers approve {seen.server}"
        _say(f"To accept what is shown: {command} TOOL, or {command} --all")
    else:
        _say(f"Nothing of {seen.server} is in quarantine.")


def approve(
    seen: Inspected, pins: Pins, approvals: ApprovalStore, tools: Sequence[str], *, every: bool
) -> None:
    """Shows tools and skills in quarantine, and approves the definitions that were shown.

    Temporary and one-time approvals of calls are deleted: they were for the old definition.

    Args:
        seen: The server.
        pins: Approved definitions.
        approvals: Approvals of calls.
        tools: Names of tools and skills.
        every: Whether to approve everything in quarantine.
    """
    _say_how(seen)
    for each in _select(seen, tools, every=every):
        _show(each, pins)
        forget_typed()
        if typer.confirm(f"Accept this definition of {each.exposed}?"):
            definition = each.judged.definition
            approvals.forget(each.exposed)
            pins.approve(each.server, each.name, definition.sha256, definition.text)
            _say(f"{each.exposed} may be used.")


def _select(seen: Inspected, tools: Sequence[str], *, every: bool) -> Sequence[Quarantined]:
    if every:
        return seen.quarantined
    by_name = {each.name: each for each in seen.quarantined}
    by_name |= {each.exposed: each for each in seen.quarantined}
    unknown = [name for name in tools if name not in by_name]
    if unknown or not tools:
        waiting = ", ".join(each.exposed for each in seen.quarantined) or "nothing"
        problem = f"{unknown[0]!r} is not in quarantine" if unknown else "Name a tool, or --all"
        echo(f"{problem}; in quarantine for {seen.server}: {waiting}.", err=True)
        raise typer.Exit(1)
    return [by_name[name] for name in dict.fromkeys(tools)]


def _say_how(seen: Inspected) -> None:
    if seen.surveyed.problem:
        before = "; this is what it offered last" if seen.surveyed.listing else ""
        _say(f"{seen.server} {seen.surveyed.problem}{before}.")


def _show(tool: Quarantined, pins: Pins) -> None:
    judged = tool.judged
    own = json.dumps(tool.name, ensure_ascii=False)
    _say(f"{tool.exposed}  (its server calls it {own})")
    for finding in judged.findings:
        _say(f"  {finding.reason}")
        if finding.shown:
            _say(f"      {' '.join(finding.shown.split())}")
    accepted = pins.definition(tool.server, tool.name)
    content = judged.definition.content
    if judged.pin is not None and accepted is not None:
        day = datetime.fromtimestamp(judged.pin.pinned_at).astimezone().strftime("%Y-%m-%d %H:%M")
        _say(f"  changes since {day}: accepted (-), now (+):")
        shown = difference(accepted, content)
    else:
        _say("  its definition:")
        shown = lines(content)
    for line in shown:
        _say(f"    {line}")


def _say(line: str) -> None:
    """Prints one line, with invisible characters marked."""
    echo(wrapped(visible(line)))

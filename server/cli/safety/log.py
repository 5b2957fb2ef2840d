"""`toolcrib log`: shows calls, callers, decisions and outcomes."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from server.cli.terminal.options import ConfigOption, DataDirOption
from server.cli.terminal.screen import echo, fail
from server.mcp.visible import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

POLL_INTERVAL = 0.2
"""Seconds between polls of the log."""

ARGUMENT_CHARACTERS = 160
"""Length of one argument; `--json` shows it in full."""

INDENT = " " * 4
"""Indents the lines below a call on a terminal."""

UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
STYLES = {"ok": "green", "cancelled": "yellow", "awaiting": "cyan"}

Wanted = Callable[[dict[str, Any]], bool]


def log(  # noqa: PLR0913, PLR0917  # one parameter an option
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep showing new calls, until Ctrl-C.")
    ] = False,
    tool: Annotated[str | None, typer.Option("--tool", help="Only calls of this tool.")] = None,
    outcome: Annotated[
        str | None,
        typer.Option(
            "--outcome", help="Only these: ok, failed, cancelled, awaiting, or an error type."
        ),
    ] = None,
    verdict: Annotated[
        str | None,
        typer.Option(
            "--verdict", help="Only calls that the policy decided so: allow, ask or deny."
        ),
    ] = None,
    user: Annotated[str | None, typer.Option("--user", help="Only calls of this user.")] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Only calls since then, such as 2h, 3d, or ISO 8601 (local time).",
        ),
    ] = None,
    last: Annotated[int, typer.Option("--last", min=0, help="Maximum number of calls.")] = 20,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the entries as they are stored.")
    ] = False,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Show the audit log: every tool call, who made it and how it ended."""
    from rich.console import Console

    from server.settings.sources import load
    from tools.core.audit.trail import AuditTrail

    after = None if since is None else seconds_since(since)
    path = load({"data_dir": data_dir}, config_file=config).audit_file
    given = {"tool": tool, "verdict": verdict, "user": user}
    wanted = _wanted({key: value for key, value in given.items() if value}, outcome, after)
    show = _printer(Console(highlight=False), as_json=as_json)
    trail = AuditTrail(path)
    try:
        entries = trail.last(last, wanted, since=after)
        for entry in entries:
            show(entry)
        if last and not entries:
            echo(f"No such call in {visible(str(path))}.", err=True)
        while follow:
            time.sleep(POLL_INTERVAL)
            for entry in filter(wanted, trail.news()):
                show(entry)
    except KeyboardInterrupt:
        pass
    except OSError as error:
        fail(f"Error: the audit log cannot be read: {error}")
    if trail.unreadable:
        echo(f"Lines that cannot be read: {trail.unreadable}.", err=True)


def _wanted(given: dict[str, str], outcome: str | None, since: float | None) -> Wanted:
    def wanted(entry: dict[str, Any]) -> bool:
        if any(entry.get(key) != value for key, value in given.items()):
            return False
        ended = str(entry.get("outcome"))
        if outcome == "failed" and ended in STYLES:
            return False
        if outcome not in {None, "failed", ended}:
            return False
        return since is None or _moment(entry["time"]) >= since

    return wanted


def seconds_since(since: str) -> float:
    """Converts an age or a time to Unix seconds."""
    age = re.fullmatch(r"(\d{1,6})([smhdw])", since)
    if age:
        return time.time() - int(age[1]) * UNITS[age[2]]
    try:
        return datetime.fromisoformat(since).timestamp()
    except (ValueError, OverflowError):
        raise typer.BadParameter(
            f"{since!r} is neither an age such as 90s, 15m, 2h, 3d, 1w nor a time in ISO 8601",
            param_hint="--since",
        ) from None


def _moment(text: str) -> float:
    """Returns Unix seconds; 0 for an invalid time or one not valid in every time zone."""
    try:
        moment = datetime.fromisoformat(text)
        return moment.timestamp() if MINYEAR < moment.year < MAXYEAR else 0.0
    except (ValueError, OverflowError):
        return 0.0


def format_time(text: str) -> str:
    """Formats a time of a log in the time zone of this machine."""
    return f"{datetime.fromtimestamp(_moment(text), UTC).astimezone():%Y-%m-%d %H:%M:%S}"


def _printer(console: Console, *, as_json: bool) -> Callable[[dict[str, Any]], None]:
    """Returns a function that prints an entry: two parts on a terminal, one line elsewhere."""
    from rich.text import Text

    def show(entry: dict[str, Any]) -> None:
        if as_json:
            echo(json.dumps(entry, separators=(",", ":")))
            return
        call, circumstances = _call(entry), Text(_circumstances(entry), "dim")
        if not console.is_terminal:
            console.print(Text("  ").join((call, circumstances)), soft_wrap=True)
            return
        console.print(call, no_wrap=True, overflow="ellipsis")
        for row in circumstances.wrap(console, max(console.width - len(INDENT), 1)):
            console.print(INDENT, row, sep="")

    return show


def _call(entry: dict[str, Any]) -> Text:
    """Formats the time, the call and its outcome."""
    from rich.text import Text

    outcome, given = _value_text(entry, "outcome"), entry.get("arguments")
    arguments = given.items() if isinstance(given, dict) else ()
    return Text.assemble(
        (f"{format_time(entry['time'])}  ", "dim"),
        (f"{outcome:<17}  ", STYLES.get(outcome, "red")),
        (_value_text(entry, "tool"), "bold"),
        *(f"  {visible(_format_argument(*each))}" for each in arguments),
    )


def _value_text(entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    return "" if value is None else visible(str(value))


def _circumstances(entry: dict[str, Any]) -> str:
    """Formats the decision, duration, confinement and caller of a call."""
    told = partial(_value_text, entry)
    approved = f"approved by {told('approved_by')}" if told("approved_by") else ""
    source = f" ({told('rule_source')})" if told("rule_source") else ""
    decided = f"{told('verdict')} by {told('rule')}{source}" if told("verdict") else "not judged"
    sandbox = f"sandbox {told('sandbox')}" if told("sandbox") else ""
    whose = "/".join(filter(None, (told("user"), told("client"))))
    within = f"called by {told('called_by')}" if told("called_by") else ""
    took = f"{told('milliseconds')} ms"
    return ", ".join(filter(None, (decided, approved, took, sandbox, within, whose)))


def _format_argument(name: str, value: object) -> str:
    from storage.index.bounded import clip

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return clip(f"{name}={text}", ARGUMENT_CHARACTERS)

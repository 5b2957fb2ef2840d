"""`toolcrib undo` and `worktrees`: show and revert what agents did to files and work trees."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import anyio
import typer

from server.cli.invocation import invocation
from server.cli.terminal.options import ConfigOption, DataDirOption, RootOption
from server.cli.terminal.screen import echo, fail, forget_typed, wrapped
from server.mcp.visible import visible, visible_lines
from tools.answers.directory import counted
from tools.core.errors import ToolError
from tools.sandbox.files.text_files import unicode_name

if TYPE_CHECKING:
    from server.app import App
    from storage.keeping.changes.models import Change, ChangeFilter
    from tools.sandbox.history.history import CallHistory
    from tools.sandbox.history.undo import Step, Undo


TOOL = "toolcrib undo"
"""The tool name under which an undo is recorded."""

MOST_FILES = 4
"""Maximum number of files listed per call."""

MOST_LINES = 200
"""Maximum number of diff lines shown."""

_WILL = {"put back": "Put back", "remove": "Remove"}


def undo(  # noqa: PLR0913, PLR0917  # one parameter an option
    call: Annotated[
        str | None,
        typer.Argument(
            metavar="[CALL]", help="Id of the call, or its first characters; default: the last one."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="All changes since then, such as 2h, 3d, or ISO 8601 (local time).",
        ),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List the calls that changed files.")
    ] = False,
    last: Annotated[
        int, typer.Option("--last", min=1, help="Maximum number of calls listed.")
    ] = 20,
    forget: Annotated[
        bool, typer.Option("--forget", help="Remove for good what is kept, instead of undoing it.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also revert files that were changed since.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")] = False,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """Undo what agents did to files; shows the differences and asks first."""
    from server.cli.opened import open_app
    from storage.keeping.changes.models import ChangeFilter

    after = None
    if since is not None:
        from server.cli.safety.log import seconds_since

        after = seconds_since(since)
    with open_app(root=root, data_dir=data_dir, config_file=config) as app:
        history = _history(app)
        wanted = ChangeFilter(root=history.root, call=call or "", since=after)
        found = history.own.find(wanted)
        if not found:
            echo(f"No such change in {visible(history.root)} is kept.", err=True)
            raise typer.Exit(0 if listed else 1)
        if listed:
            _list(found, last)
            return
        if call is not None:
            _check_one(call, found)
        if forget:
            _forget(history, wanted, len(found), yes=yes)
            return
        if call is None and after is None:
            found = [each for each in found if each.by.call == found[0].by.call]
        _list(found, last)
        _undo(app, history, found, force=force, yes=yes)


def _history(app: App) -> CallHistory:
    """Returns the user's change history, with this undo as the caller."""
    from storage.keeping.changes.models import Caller

    own = Caller(os.urandom(8).hex(), app.identity, app.sessions.own, TOOL)
    return app.history.of(own)


def _check_one(call: str, found: Sequence[Change]) -> None:
    calls = {each.by.call for each in found}
    if len(calls) > 1:
        fail(f"{call!r} could be {len(calls)} calls; see `{invocation()} undo --list`.")


def _list(found: Sequence[Change], last: int) -> None:
    groups = groupby(found, key=lambda change: change.by.call)
    for _, (_, changes) in zip(range(last), groups, strict=False):
        echo(wrapped(_heading(list(changes))))


def _heading(changes: Sequence[Change]) -> str:
    """Describes a call on one line: its id, time, tool and files."""
    first = changes[0]
    when = datetime.fromtimestamp(first.time, UTC).astimezone()
    names = sorted({change.path for change in changes})
    files = ", ".join(_display_name(name) for name in names[:MOST_FILES])
    if len(names) > MOST_FILES:
        files += f" and {len(names) - MOST_FILES} more"
    return f"{first.by.call}  {when:%Y-%m-%d %H:%M:%S}  {visible(first.by.tool)}  {files}"


def _undo(
    app: App, history: CallHistory, found: Sequence[Change], *, force: bool, yes: bool
) -> None:
    from server.composition.machine import make_sandbox
    from tools.sandbox.history.undo import Undo

    sandbox = make_sandbox(app.settings, app.settings.root).recorded(history)
    taking = Undo(history.own, sandbox)
    steps = taking.plan(found, force=force)
    _show(taking, steps)
    doing = [each for each in steps if each.action != "none"]
    if not doing:
        fail("Nothing to undo.")
    if not yes:
        forget_typed()
        typer.confirm(f"Undo {counted(len(doing), 'file')}?", abort=True)
    done = taking.take_back(steps)
    failed = [each for each in done if each.action == "none" and each not in steps]
    for each in failed:
        echo(wrapped(f"Left {_display_name(each.path)}: {visible(each.why)}"), err=True)
    echo(f"Undid {counted(len(doing) - len(failed), 'file')}; `{invocation()} undo` reverts that.")
    if failed:
        raise typer.Exit(1)


def _show(taking: Undo, steps: Sequence[Step]) -> None:
    left = MOST_LINES
    for step in steps:
        if step.action == "none":
            echo(wrapped(f"Leave {_display_name(step.path)}: {visible(step.why)}"))
            continue
        echo(wrapped(f"{_WILL[step.action]} {_display_name(step.path)}"))
        lines = taking.diff(step).split("\n")[2:]
        for line in lines[:left]:
            echo(wrapped(visible_lines(f"  {line}")))
        if len(lines) > left:
            echo(f"  … and {len(lines) - left} more lines")
        left = max(left - len(lines), 0)


def _forget(history: CallHistory, wanted: ChangeFilter, count: int, *, yes: bool) -> None:
    what = counted(count, "change")
    if not yes:
        typer.confirm(f"Permanently remove the kept copies of {what}?", abort=True)
    history.own.forget(wanted)
    echo(f"Removed the kept copies of {what}; they can no longer be undone.")


def _display_name(path: str) -> str:
    return visible(unicode_name(path))


def worktrees(
    prune: Annotated[bool, typer.Option("--prune", help="Remove those without changes.")] = False,
    discard: Annotated[
        str | None, typer.Option(metavar="NAME", help="Remove one with its changes, after asking.")
    ] = None,
    root: RootOption = None,
    data_dir: DataDirOption = None,
    config: ConfigOption = None,
) -> None:
    """List the worktrees that delegated agents left, and remove those without changes."""
    from server.cli.opened import open_app
    from server.composition.agents import changes_in, close_lost_delegations, worktrees_of
    from server.composition.machine import MachineParts

    with open_app(root=root, data_dir=data_dir, config_file=config) as app:
        close_lost_delegations(app.settings, app.library)
        place = worktrees_of(app.settings)
        names = sorted(each.name for each in place.iterdir()) if place.is_dir() else []
        if discard is not None and discard not in names:
            raise typer.BadParameter(f"{discard!r} is not in {place}", param_hint="--discard")
        if not names:
            echo(f"No worktrees in {place}.")
        for name in names if discard is None else [discard]:
            found = app.library.delegations.of_session(name)
            state = "unknown" if found is None else found.outcome or "running"
            echo(f"{place / name}  {'?' if found is None else found.agent}, {state}")
            if state == "running" or not (prune or discard):
                continue
            try:
                made, worktree = anyio.run(changes_in, MachineParts(app.settings, os.environ), name)
            except ToolError as error:
                echo(f"  kept: {error.message}")
                continue
            if worktree.diff and discard is None:
                echo(f"  kept: it holds changes; --discard {name} shows and removes them")
                continue
            if worktree.diff:
                echo(worktree.diff)
            question = "  Remove it with these changes?"
            if not worktree.diff or typer.confirm(question, default=False):
                made.remove(worktree)
                echo("  removed")

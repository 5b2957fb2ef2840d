"""Changes of files: lists and undoes those made in this session."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from pydantic import Field

from storage.keeping.changes.models import Change, ChangeFilter
from storage.models import utc
from tools.answers.params import TimeWindow
from tools.core.context import RequestContext
from tools.core.errors import InvalidArgumentsError, NotFoundError
from tools.core.result import ToolModel
from tools.core.spec import Effect, ToolScope, tool
from tools.sandbox.files.text_files import FilePath, unicode_name, visible
from tools.sandbox.history.undo import Action, Step, Undo

MAX_DIFF_CHARACTERS = 12_000  # limit on the diff in a result

NOT_KEPT = (
    "Of programs, files that git ignores, links, files over 1 MB and what tools make again "
    "(node_modules, virtual environments, caches, .git) are not kept."
)


class FileChange(ToolModel):
    """A change to one file.

    Attributes:
        id: Its number.
        call: ID of the call that made it, as in the audit log.
        time: When it was made, UTC.
        tool: The tool.
        file_path: The file, relative to the root.
        change: The kind of change.
        not_kept: Why it cannot be undone; empty if it can.
    """

    id: int
    call: str
    time: datetime
    tool: str
    file_path: str
    change: str
    not_kept: str

    @classmethod
    def of(cls, change: Change) -> FileChange:
        """Converts a change."""
        return cls(
            id=change.id,
            call=change.by.call,
            time=utc(change.time),
            tool=change.by.tool,
            file_path=unicode_name(change.path),
            change=_kind(change),
            not_kept=change.before.why,
        )

    def to_line(self) -> str:
        """Formats the change as one line."""
        lost = f" (cannot be undone: {self.not_kept})" if self.not_kept else ""
        done = f"{self.change} {visible(self.file_path)}{lost}"
        return f"#{self.id} {self.time:%Y-%m-%d %H:%M:%S} {self.call} {self.tool}: {done}"


class FileChanges(ToolModel):
    """Changes to files, newest first.

    Attributes:
        changes: The changes.
        has_more: Whether there are earlier ones.
        note: What the list leaves out.
    """

    changes: list[FileChange]
    has_more: bool
    note: str

    def to_text(self) -> str:
        """Formats one line per change: number, time, call, tool and the kind of change."""
        lines = [each.to_line() for each in self.changes] or ["No changes in this session."]
        if self.has_more:
            lines.append("[There are more: give a higher limit, or until when.]")
        return "\n".join((*lines, f"[{self.note}]"))


class UndoneFile(ToolModel):
    """The effect of an undo on one file.

    Attributes:
        file_path: The file, relative to the root.
        action: Whether it is restored, removed or left alone.
        why: Why it is left alone.
    """

    file_path: str
    action: Action
    why: str

    @classmethod
    def of(cls, step: Step) -> UndoneFile:
        """Converts a step of an undo."""
        return cls(file_path=unicode_name(step.path), action=step.action, why=step.why)


class Undone(ToolModel):
    """The result of an undo or a dry run.

    Attributes:
        dry_run: Whether this was a dry run.
        files: The files.
        diff: The changes as a unified diff, shortened.
    """

    dry_run: bool
    files: list[UndoneFile]
    diff: str

    def to_text(self) -> str:
        """Formats one line per file, then the diff."""
        lines = [_format_file(each, dry_run=self.dry_run) for each in self.files]
        if self.dry_run and any(each.action != "none" for each in self.files):
            lines.append("Nothing was changed: call again with dry_run=false.")
        return "\n".join(filter(None, (*lines, self.diff)))


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ},
    idempotent=True,
    tags=("files",),
    capabilities=("which files were changed in this session", "what a program or edit changed"),
)
def list_changes(
    context: RequestContext,
    path: Annotated[FilePath | None, Field(description="Only this file or directory")] = None,
    call: Annotated[
        str, Field(pattern=r"^[0-9a-f]{0,16}$", description="Only changes of this call")
    ] = "",
    time_range: Annotated[TimeWindow | None, Field(description="When they were made")] = None,
    limit: Annotated[int, Field(ge=1, le=1_000, description="Most changes")] = 20,
) -> FileChanges:
    """Lists the changes to files that this session made with file tools and programs."""
    window = None if time_range is None else time_range.to_range()
    relative = "." if path is None else context.sandbox.relative(path)
    wanted = ChangeFilter(
        root=context.history.root,
        session_id=context.session_id,
        call=call,
        path="" if relative == "." else relative,
        since=None if window is None else window.start,
        until=None if window is None else window.end,
    )
    found = context.history.own.find(wanted, limit + 1)
    return FileChanges(
        changes=list(map(FileChange.of, found[:limit])), has_more=len(found) > limit, note=NOT_KEPT
    )


@tool(
    scope=ToolScope.CONTEXT,
    effects={Effect.READ, Effect.WRITE},
    destructive=True,
    tags=("files",),
    capabilities=("undo a change of a file", "put files back as they were before a command"),
    timeout=600,
)
def undo_change(
    context: RequestContext,
    call: Annotated[
        str | None, Field(pattern=r"^[0-9a-f]{16}$", description="All changes of this call")
    ] = None,
    change_ids: Annotated[
        list[Annotated[int, Field(ge=1, le=2**53)]] | None,
        Field(min_length=1, max_length=1_000, description="Or these changes"),
    ] = None,
    dry_run: Annotated[bool, Field(description="Only show what would change")] = True,
) -> Undone:
    """Undoes changes to files that this session made; files changed since then are left alone.

    list_changes has the numbers. Undoing is itself a change that can be undone.
    """
    if (call is None) == (change_ids is None):
        raise InvalidArgumentsError(
            "call or change_ids: give one of them.",
            next_actions=["Call list_changes for the numbers of calls and changes."],
        )
    own = context.history.own
    changes = own.find(
        ChangeFilter(
            root=context.history.root,
            session_id=context.session_id,
            call=call or "",
            ids=change_ids,
        )
    )
    _check_found(changes, call, change_ids or ())
    undo = Undo(own, context.sandbox)
    steps = undo.plan(changes)
    diff = _diff(undo, steps)
    if not dry_run:
        steps = undo.take_back(steps)
    return Undone(dry_run=dry_run, files=list(map(UndoneFile.of, steps)), diff=diff)


def _check_found(changes: Sequence[Change], call: str | None, ids: Sequence[int]) -> None:
    missing = set(ids) - {change.id for change in changes}
    if missing or not changes:
        what = f"call {call!r}" if call is not None else f"change {sorted(missing)}"
        raise NotFoundError(
            f"This session made no {what} that is kept.",
            next_actions=["Call list_changes to see those that there are."],
        )


def _kind(change: Change) -> str:
    match bool(change.before.state), bool(change.after.state):
        case False, _:
            return "created"
        case _, False:
            return "deleted"
        case _:
            return "changed"


def _format_file(file: UndoneFile, *, dry_run: bool) -> str:
    name = visible(file.file_path)
    match file.action:
        case "put back":
            return f"{'Would put' if dry_run else 'Put'} back {name}"
        case "remove":
            return f"{'Would remove' if dry_run else 'Removed'} {name}"
        case _:
            return f"Left {name}: {file.why}"


def _diff(undo: Undo, steps: Sequence[Step]) -> str:
    parts, room = list[str](), MAX_DIFF_CHARACTERS
    for step in steps:
        part = undo.diff(step)
        if len(part) > room:
            parts.append("[Further differences are not shown.]")
            break
        parts.append(part)
        room -= len(part)
    return "\n".join(filter(None, parts))

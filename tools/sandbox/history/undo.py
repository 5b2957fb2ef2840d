"""Changes taken back: what each file was before, where nobody else has changed it since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from storage.keeping.changes.models import Change
from storage.keeping.changes.own import OwnChanges
from tools.core.errors import ToolError
from tools.sandbox.files.kept import Found
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.files.text_files import unicode_name, visible
from tools.sandbox.history.diff import unified

__all__ = ["Action", "Step", "plan", "take_back"]

Action = Literal["put back", "remove", "none"]


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done at one path.

    Attributes:
        path: Relative to the root.
        action: What to do there.
        why: Why nothing is done; empty where something is.
        mode: The mode of the file that is put back.
        content: What it held; None where nothing was there.
        now: What is there.
    """

    path: str
    action: Action
    why: str = ""
    mode: int = 0
    content: bytes | None = None
    now: Found | None = None

    def diff(self) -> str:
        """What would change, as a unified diff; empty where nothing would."""
        if self.action == "none" or self.now is None:
            return ""
        return unified(visible(unicode_name(self.path)), self.now.content, self.content)


def plan(
    own: OwnChanges, sandbox: Sandbox, changes: Sequence[Change], *, force: bool = False
) -> list[Step]:
    """What takes changes back; nothing is changed yet.

    Several changes of one file are one: from what it was before the first to what the last made.

    Args:
        own: Has what they replaced.
        sandbox: The files, as the caller may use them.
        changes: Newest first.
        force: Whether what somebody else changed since is overwritten.
    """
    first = {change.path: change for change in changes}
    last = {change.path: change for change in reversed(changes)}
    return [_step(own, sandbox, first[path], last[path], force=force) for path in sorted(first)]


def take_back(sandbox: Sandbox, steps: Sequence[Step]) -> list[Step]:
    """Takes changes back, each file in one step, and says what was done and why some was not.

    What is removed goes first: a file may stand where a directory has to, or the other way round.
    """
    done = [
        _done(sandbox, each)
        for each in sorted(steps, key=lambda step: step.path, reverse=True)
        if each.action == "remove"
    ]
    done += [_done(sandbox, each) for each in steps if each.action == "put back"]
    return sorted((*done, *(each for each in steps if each.action == "none")), key=_path)


def _path(step: Step) -> str:
    return step.path


def _step(own: OwnChanges, sandbox: Sandbox, first: Change, last: Change, *, force: bool) -> Step:
    path, before, after = first.path, first.before, last.after
    try:
        now = sandbox.found(path, after)
    except ToolError as error:
        return Step(path, "none", error.message)
    content = own.content(first) if before.is_file else None
    why = ""
    if now.state.same_as(before):
        why = "it is as it was"
    elif before.why:
        why = f"what was there is not kept ({before.why})"
    elif not force and not now.state.same_as(after):
        why = "it was changed since"
    elif before.is_file and content is None:
        why = "what was there is no longer kept"
    if why:
        return Step(path, "none", why)
    return Step(path, "put back" if before.is_file else "remove", "", before.mode, content, now)


def _done(sandbox: Sandbox, step: Step) -> Step:
    if step.now is None:
        return step
    try:
        sandbox.restore(step.path, step.content, step.mode, expected=step.now.state)
    except ToolError as error:
        return Step(step.path, "none", error.message)
    return step

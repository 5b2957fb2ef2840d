"""Undoes changes: restores each file unless someone else has changed it since."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from storage.keeping.changes.models import ABSENT, Change, FileState, OwnChanges
from tools.core.errors import ToolError
from tools.sandbox.files.sandbox import Sandbox
from tools.sandbox.files.text_files import unicode_name, visible

MOST_LINES = 2_000  # limit on the lines of either side that are compared
LONGEST_LINE = 300  # limit on the characters of a line


def unified(path: str, old: bytes | None, new: bytes | None) -> str:
    """Formats the difference; only as two sizes unless both sides are short texts.

    `old` is None if the file does not exist, and `new` if it is removed.
    """
    head = (
        "--- " + ("/dev/null" if old is None else path),
        "+++ " + ("/dev/null" if new is None else path),
    )
    before, after = _lines(old or b""), _lines(new or b"")
    if before is None or after is None:
        sizes = (f"{len(each)} bytes" if each is not None else "nothing" for each in (old, new))
        return "\n".join((*head, " -> ".join(sizes)))
    changed = list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]
    return "\n".join((*head, *(line[:LONGEST_LINE] for line in changed)))


def _lines(content: bytes) -> list[str] | None:
    """Splits a text into lines; None if it is not text, or too long."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    if "\0" in text or text.count("\n") > MOST_LINES:
        return None
    lines = text.split("\n")
    if lines[-1]:
        lines[-1] += "\n\\ No newline at end of file"
    else:
        lines.pop()
    return lines


Action = Literal["put back", "remove", "none"]


@dataclass(frozen=True, slots=True)
class Step:
    """The planned undo of one path."""

    change: Change  # the first change to undo
    action: Action
    why: str = ""  # why nothing is done; empty if something is
    now: FileState = ABSENT

    @property
    def path(self) -> str:
        """The path, relative to the root."""
        return self.change.path


class Undo:
    """Undoes changes, in two steps: plan and execution."""

    def __init__(self, own: OwnChanges, sandbox: Sandbox) -> None:
        self._own = own
        self._sandbox = sandbox

    def plan(self, changes: Sequence[Change], *, force: bool = False) -> list[Step]:
        """Plans an undo without changing anything.

        Several changes to one file are undone as one: from the state before the first to the state
        after the last.

        The changes are given newest first. `force` overwrites later changes by others.
        """
        self._sandbox.held.check()
        first = {change.path: change for change in changes}
        last = {change.path: change.after for change in reversed(changes)}
        return [self._step(first[path], last[path], force=force) for path in sorted(first)]

    def diff(self, step: Step) -> str:
        """Returns a step as a unified diff; empty if it changes nothing."""
        if step.action == "none":
            return ""
        try:
            now = self._sandbox.examine(step.path, step.now).content
        except ToolError as error:
            return error.message
        then = self._own.content(step.change) if step.action == "put back" else None
        return unified(visible(unicode_name(step.path)), now, then)

    def take_back(self, steps: Sequence[Step]) -> list[Step]:
        """Executes a plan, each file atomically; reports what was done, or why not.

        Removals come first, as a file may be in the place of a directory, or the other way round.
        """
        removed = [step for step in reversed(steps) if step.action == "remove"]
        others = [step for step in steps if step.action != "remove"]
        done = [self._execute(step) for step in (*removed, *others)]
        return sorted(done, key=lambda step: step.path)

    def _step(self, first: Change, after: FileState, *, force: bool) -> Step:
        before = first.before
        try:
            now = self._sandbox.examine(first.path, after).state
        except ToolError as error:
            return Step(first, "none", error.message)
        why = ""
        if now.same_as(before):
            why = "it is as it was"
        elif before.why:
            why = f"what was there is not kept ({before.why})"
        elif not force and not now.same_as(after):
            why = "it was changed since"
        elif before.is_file and not self._own.has_content(first):
            why = "what was there is no longer kept"
        if why:
            return Step(first, "none", why)
        return Step(first, "put back" if before.is_file else "remove", "", now)

    def _execute(self, step: Step) -> Step:
        if step.action == "none":
            return step
        content = self._own.content(step.change) if step.action == "put back" else None
        if content is None and step.action == "put back":  # removed meanwhile
            return Step(step.change, "none", "what was there is no longer kept")
        mode = step.change.before.mode
        try:
            self._sandbox.restore(step.path, content, mode, expected=step.now)
        except ToolError as error:
            return Step(step.change, "none", error.message)
        return step

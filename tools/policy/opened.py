"""Files that a line of a shell opens by its redirections, under the rules about files."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tools.core.spec import ToolSpec
from tools.policy.paths import relative_path
from tools.policy.shell.plain_line import Opened, Run
from tools.policy.verdict import Decision, Verdict
from tools.sandbox.files.protect import Guard, ProtectedPathError


@dataclass(frozen=True, slots=True)
class LineFiles:
    """What the rules say of the files that a line opens.

    Attributes:
        cwd: Where the line begins, relative to the root.
        roots: The root, absolute, in each of its spellings.
        find: Gives the tool of a name.
        judge: What the rules say of a call.
    """

    cwd: str
    roots: tuple[str, ...]
    find: Callable[[str], ToolSpec | None]
    judge: Callable[[ToolSpec, Mapping[str, Any]], Decision]

    def decide(self, opened: Opened) -> Decision | str:
        """The strictest decision about all that a redirection may open; else why there is none."""
        spelled = opened.paths(self.cwd) or ("..",)
        paths = [relative_path(path, self.roots) for path in spelled]
        found = [self._judged(path, opened) for path in paths]
        known = [decision for decision in found if decision is not None]
        denial = next((each for each in known if each.verdict is Verdict.DENY), None)
        if denial is not None:
            return denial
        if len(known) < len(found):
            return "which is not known to be beneath the root"
        if opened.writes and any(path is not None and _is_closed(path) for path in paths):
            return "which other programs obey"
        return next((each for each in known if each.verdict is Verdict.ASK), known[0])

    def _judged(self, path: str | None, opened: Opened) -> Decision | None:
        """What the rules say of the tool that reads a file, or writes it."""
        spec = self.find("write_file" if opened.writes else "read_file")
        if path is None or spec is None or spec.subject is None:
            return None
        return self.judge(spec, {spec.subject.parameter: path})

    def is_beneath(self, run: Run, path: str) -> bool:
        """Whether a path is beneath the root, from wherever a command may run."""
        if path.startswith("/"):
            return relative_path(path, self.roots) is not None
        return run.directories is not None and all(
            relative_path(posixpath.join(self.cwd, each, path), self.roots) is not None
            for each in run.directories
        )


def _is_closed(path: str) -> bool:
    """Whether programs obey what stands there, so that it is closed to writes."""
    try:
        Guard(()).judge_names(path.split("/"))
    except ProtectedPathError:
        return True
    return False

"""sandbox-exec: the sandbox of macOS, told by a profile.

The profile language is Apple's own and described nowhere; this one keeps to what
`/System/Library/Sandbox/Profiles` shows. It is tested as a text: no macOS was at hand to run it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.plan import Kept, Plan
from tools.sandbox.processes.confinement.reach import DEVICES
from tools.sandbox.processes.models import Level, Prepared

__all__ = ["SandboxExec", "profile_text"]

_PROGRAM = "/usr/bin/sandbox-exec"

_ALWAYS = (
    "(version 1)",
    "(deny default)",
    "(allow process-fork process-exec)",
    "(allow signal (target same-sandbox))",
    "(allow process-info* (target same-sandbox))",
    "(allow sysctl-read)",
    "(allow file-read-metadata)",
    '(allow file-read* (literal "/"))',
    '(allow file-ioctl (literal "/dev/null") (literal "/dev/zero"))',
    '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))',
)


class SandboxExec:
    """Confines by sandbox-exec."""

    level = Level.SANDBOX_EXEC

    def describe(self) -> str:
        """Its name; it has no version.

        Raises:
            UnavailableError: If it is not there.
        """
        if not Path(_PROGRAM).exists():
            raise UnavailableError(f"There is no {_PROGRAM}.")
        return "sandbox-exec"

    def close(self) -> None:
        """It has made nothing."""

    def temporary(self, scratch: str) -> str:
        """It sees its private directory where it is."""
        return scratch

    def check(self, kept: Kept) -> None:
        """It can keep processes from all places."""

    def prepare(self, plan: Plan) -> Prepared:
        """Puts the profile before the program."""
        argv = (_PROGRAM, "-p", profile_text(plan), *plan.argv)
        return replace(plan.prepared(), argv=argv)


def profile_text(plan: Plan) -> str:
    """The profile of a plan: the last rule that fits an operation decides.

    Args:
        plan: What is to run, and what it may touch.
    """
    return "\n".join((*_ALWAYS, *_rules(plan)))


def _rules(plan: Plan) -> Iterator[str]:
    links = (link for link, _target in plan.reach.links)
    for path in (*plan.reach.readable, *links, plan.root, plan.scratch):
        yield f"(allow file-read* {_tree(path)})"
    for path in DEVICES:
        yield f"(allow file-read* file-write-data (literal {_quoted(path)}))"
    for path in (plan.scratch, *((plan.root,) if plan.writes else ())):
        yield f"(allow file-write* {_tree(path)})"
    for path in (*plan.own, *plan.kept.pinned):  # Not moved, not removed; used as before.
        yield f"(deny file-write-unlink (literal {_quoted(path)}))"
    for path in (*plan.closed, *plan.kept.locked):
        yield f"(deny file-write* {_tree(path)})"
    for path in plan.kept.hidden:
        yield f"(deny file-read* file-write* {_tree(path)})"


def _tree(path: str) -> str:
    return f"(subpath {_quoted(path)})"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

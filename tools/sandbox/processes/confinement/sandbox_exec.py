"""sandbox-exec: the sandbox of macOS, configured by a profile.

Apple does not document the profile language; this profile uses only what the files in
`/System/Library/Sandbox/Profiles` use. Only its text is tested: no macOS was available to run it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tools.core.errors import UnavailableError
from tools.sandbox.processes.confinement.plan import DEVICES, Confinement, Plan
from tools.sandbox.processes.models import Level, Prepared

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


class SandboxExec(Confinement):
    """Confines programs with sandbox-exec."""

    level = Level.SANDBOX_EXEC

    def describe(self) -> str:
        """Returns its name, as it has no version."""
        if not Path(_PROGRAM).exists():
            raise UnavailableError(f"There is no {_PROGRAM}.")
        return "sandbox-exec"

    def prepare(self, plan: Plan) -> Prepared:
        """Prefixes the program with the profile."""
        argv = (_PROGRAM, "-p", profile_text(plan), *plan.argv)
        return replace(plan.prepared(), argv=argv)


def profile_text(plan: Plan) -> str:
    """Returns the profile of a plan, in which the last matching rule decides."""
    return "\n".join((*_ALWAYS, *_rules(plan)))


def _rules(plan: Plan) -> Iterator[str]:
    links = (link for link, _target in plan.visible.links)
    own = (plan.scratch, *((plan.home,) if plan.home else ()))
    for path in (*plan.visible.readable, *links, plan.root, *own):
        yield f"(allow file-read* {_tree(path)})"
    for path in DEVICES:
        yield f"(allow file-read* file-write-data (literal {_quote(path)}))"
    for path in (*own, *((plan.root,) if plan.writes else ())):
        yield f"(allow file-write* {_tree(path)})"
    for path in (*plan.pinned, *plan.protected.pinned):  # neither moved nor removed
        yield f"(deny file-write-unlink (literal {_quote(path)}))"
    for path in (*plan.write_protected, *plan.protected.read_only):
        yield f"(deny file-write* {_tree(path)})"
    for path in (*plan.protected.hidden, *plan.hidden):
        yield f"(deny file-read* file-write* {_tree(path)})"


def _tree(path: str) -> str:
    return f"(subpath {_quote(path)})"


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'

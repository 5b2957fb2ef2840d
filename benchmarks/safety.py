"""What policy and audit add to a call.

    python -m benchmarks.safety [--calls 300] [--rules 40] [--json]

The same tools are called in turn on three paths: without policy and audit, with the default policy
and the audit log on the disk, and with so many rules of each list in the settings besides. `ls` is
a tool that takes a shell command and runs nothing, so that judging the parsed command counts and
running it does not. Microseconds of a call, median; `added` is the median of the differences of
calls made one after another.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio

from server.mcp.approvals import StoredApprovals
from storage.approvals import ApprovalStore
from storage.index.embedders.bundled import MiniLMEmbedder
from storage.library import Library
from tools.conversion.function_to_mcp import FunctionToMCP
from tools.core.audit.audit import Audit
from tools.core.context import Origin, RequestContext
from tools.core.manager import SandboxToolManager
from tools.core.permission import Permissions
from tools.core.registry import ToolRegistry
from tools.core.spec import Effect, Subject, SubjectKind, ToolScope, tool
from tools.files import read_file
from tools.policy.policy import Policy
from tools.sandbox.files.sandbox import Sandbox

CALLS = {
    "read_file": {"file_path": "notes.md"},
    "ls": {"command": "git status --short && ls -la src | head -20"},
}
ALLOWED = ("ls(git status *)", "ls(ls *)", "ls(head *)")


@tool(
    scope=ToolScope.SANDBOXED,
    effects={Effect.READ},
    subject=Subject(SubjectKind.COMMAND, "command"),
)
async def ls(command: str) -> str:
    """Takes a command and runs nothing.

    Args:
        command: A shell command.
    """
    return command


def main() -> None:
    """Runs the benchmark that the command line asks for."""
    parser = argparse.ArgumentParser(description="What policy and audit add to a call.")
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--rules", type=int, default=40)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="toolcrib-safety-") as directory:
        report = anyio.run(_run, Path(directory), arguments.calls, arguments.rules)
    if arguments.json:
        print(json.dumps(report))
        return
    print(f"{'':12}{'without':>10}{'default':>10}{'added':>8}{'rules':>10}{'added':>8}  µs")
    for name, found in report.items():
        print(
            f"{name:12}{found['without']:10.0f}{found['default']:10.0f}"
            f"{found['default added']:8.0f}{found['rules']:10.0f}{found['rules added']:8.0f}"
        )


async def _run(directory: Path, calls: int, rules: int) -> dict[str, dict[str, float]]:
    (directory / "root").mkdir()
    (directory / "root" / "notes.md").write_text("A line of notes.\n" * 100)
    with closing(Library(directory / "data", MiniLMEmbedder())) as library:
        paths = _paths(directory, library, rules)
        return {name: await _compare(paths, name, given, calls) for name, given in CALLS.items()}


def _paths(directory: Path, library: Library, rules: int) -> dict[str, SandboxToolManager]:
    registry = ToolRegistry()
    for function in (read_file, ls):
        registry.add(FunctionToMCP.convert(function))
    sandbox = Sandbox(directory / "root", protected=[directory / "data"])
    approvals = StoredApprovals(
        ApprovalStore(library.database),
        root=str(directory / "root"),
        command="toolcrib approvals",
        wait=0,
        expire=600,
        grant=600,
    )
    policies = {
        "default": Policy("standard"),
        "rules": Policy(
            "standard",
            allow=(*ALLOWED, *(f"write_file(src{number}/**)" for number in range(rules))),
            ask=[f"ls(git push origin{number} *)" for number in range(rules)],
            deny=[f"read_file(secret{number}/**)" for number in range(rules)],
        ),
    }
    return {
        "without": SandboxToolManager(registry, sandbox=sandbox, library=library, permissions=None),
        **{
            name: SandboxToolManager(
                registry,
                sandbox=sandbox,
                library=library,
                permissions=_permissions(policy, approvals),
                audit=Audit(directory / "audit" / f"{name}.jsonl"),
            )
            for name, policy in policies.items()
        },
    }


def _permissions(policy: Policy, approvals: StoredApprovals) -> Permissions:
    return Permissions(lambda: policy, lambda: approvals)


async def _compare(
    paths: Mapping[str, SandboxToolManager], name: str, given: Mapping[str, Any], calls: int
) -> dict[str, float]:
    times: dict[str, list[float]] = {path: [] for path in paths}
    for _ in range(calls):
        for path, manager in paths.items():
            began = time.perf_counter()
            result = await manager.execute(name, given, RequestContext(Origin(session_id="one")))
            times[path].append(1e6 * (time.perf_counter() - began))
            assert not result.is_error, result.text
    found = {path: statistics.median(taken) for path, taken in times.items()}
    for path in ("default", "rules"):
        pairs = zip(times["without"], times[path], strict=True)
        found[f"{path} added"] = statistics.median(after - before for before, after in pairs)
    return found


if __name__ == "__main__":
    main()

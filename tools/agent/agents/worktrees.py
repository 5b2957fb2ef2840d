"""Git worktrees: gives an agent a copy of the root's last commit, kept if the agent changes it.

An agent may leave anything in its worktree, including a repository whose settings run programs.
The server's own git therefore works only in the root and runs nothing that its settings name.
The diff is made by a git that is confined as the agent was.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from tools.core.errors import ToolError, UnavailableError
from tools.sandbox.processes.confinement.plan import find_program
from tools.sandbox.processes.models import Command
from tools.sandbox.processes.output import Capture, communicate
from tools.sandbox.processes.scratch import remove_scratch

if TYPE_CHECKING:
    from tools.sandbox.files.openat import HeldRoot
    from tools.sandbox.processes.processes import Processes

GIT_SECONDS = 120.0
DIFF_BYTES = 12_000  # limit on a reported diff; the worktree itself keeps everything

_QUIET = (
    *("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false"),
    *("-c", "submodule.recurse=false"),
)

_OF_REPOSITORY = frozenset({"local", "worktree"})
"""Scopes of settings that belong to the repository, in git's terms."""

_DIFF = """
set -e
export GIT_INDEX_FILE="$TMPDIR/index" GIT_OBJECT_DIRECTORY="$TMPDIR/objects"
mkdir -p "$GIT_OBJECT_DIRECTORY"
git read-tree "$BASE"
find . \\( -xtype c -o -type d ! -executable \\) -prune -printf ':(exclude,literal)%P\\0' \\
  > "$TMPDIR/added" 2> "$TMPDIR/errors" || true
printf '.\\0' >> "$TMPDIR/added"
git add --all --pathspec-from-file="$TMPDIR/added" --pathspec-file-nul
git diff --cached --no-ext-diff --no-textconv --no-color "$BASE"
git ls-files --others --ignored --exclude-standard --directory | sed 's/^/# ignored: /' | head -n 20
"""
"""Prints every difference from the base, including new files, without writing to the repository.

Devices and unreadable directories are paths hidden by rules, and count as unchanged. `-xtype`
inspects the file itself: the directory entry of a hidden one still reports a regular file.
"""


@dataclass(slots=True)
class Worktree:
    """One agent's worktree."""

    path: Path
    base: str  # the commit it started from
    prefix: str  # the path of the root inside it
    common: Path  # the repository's own directory, which it shares
    git_dir: Path  # the part of the repository's directory for this worktree only
    diff: str = ""  # the agent's changes, shortened; empty if there are none or before the check
    is_kept: bool = True  # whether to keep it


class Worktrees:
    """Creates worktrees of the root's repository in a private place; `held` pins the root."""

    def __init__(self, root: Path, place: Path, search_path: str, held: HeldRoot) -> None:
        self._root = root
        self._held = held
        self._place = place
        self._git = find_program("git", search_path, str(root.resolve()))
        self._search_path = search_path

    @asynccontextmanager
    async def open(
        self, name: str, processes: Callable[[Worktree], Processes]
    ) -> AsyncIterator[tuple[Worktree, Processes]]:
        """Yields a new worktree and its process runner; removes it at the end if unchanged."""
        worktree = await anyio.to_thread.run_sync(self._make, name)
        runner = processes(worktree)
        try:
            yield worktree, runner
        finally:
            with anyio.CancelScope(shield=True):
                try:
                    await self._look(worktree, runner)
                finally:
                    await runner.aclose()
                    if not worktree.is_kept:
                        await anyio.to_thread.run_sync(self.remove, worktree)

    def existing(self, name: str) -> Worktree:
        """Returns the worktree with this name, without reading it: its agent may have tampered."""
        worktree = self._described(name)
        if not worktree.path.is_dir():
            raise UnavailableError(
                f"The worktree {worktree.path} is not there any more.",
                next_actions=["Do the work yourself."],
            )
        return worktree

    async def changes(self, name: str, processes: Callable[[Worktree], Processes]) -> Worktree:
        """Inspects a leftover worktree: its `diff` has what would be lost with it.

        The base is the commit that git records in the repository, where agents cannot write.
        """
        worktree = await anyio.to_thread.run_sync(self.existing, name)
        worktree.git_dir = worktree.common / "worktrees" / name
        runner = processes(worktree)
        try:
            worktree.base = await anyio.to_thread.run_sync(self._run, "rev-parse", "HEAD")
            commit = (worktree.git_dir / "HEAD").read_text("utf-8", "replace").strip()
            merged = ("merge-base", "--is-ancestor", commit, "HEAD")
            try:
                await anyio.to_thread.run_sync(self._run, *merged)
                worktree.base = commit
            except UnavailableError:
                pass  # it has its own commits: the diff is against the root's
            await self._look(worktree, runner)
        except OSError as error:
            worktree.diff = f"(no diff: {error.strerror})"
        finally:
            await runner.aclose()
        return worktree

    def _described(self, name: str) -> Worktree:
        if not self._git:
            raise UnavailableError("A worktree needs git, which is not installed.")
        told = self._run("rev-parse", "HEAD", "--show-prefix", "--git-common-dir")
        base, prefix, common = ([*told.split("\n"), "", ""])[:3]
        whole = Path(self._root, common).resolve()
        return Worktree(self._place / name, base, prefix or ".", whole, whole)

    def _make(self, name: str) -> Worktree:
        worktree = self._described(name)
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        path, base = str(worktree.path), worktree.base
        self._run(*self._no_filters(), "worktree", "add", "--quiet", "--detach", path, base)
        link = (worktree.path / ".git").read_text(encoding="utf-8")
        worktree.git_dir = Path(link.partition(":")[2].strip())
        return worktree

    def _no_filters(self) -> Iterator[str]:
        """Yields options that disable every filter in the repository's own settings."""
        told = self._run("config", "--list", "--null", "--show-scope").split("\0")
        keys = (
            entry.partition("\n")[0]
            for scope, entry in zip(told[::2], told[1::2], strict=False)
            if scope in _OF_REPOSITORY
        )
        for name in {key.rpartition(".")[0] for key in keys if key.startswith("filter.")}:
            if "=" in name:
                raise UnavailableError(
                    f"No git worktree is made of a repository that sets {name!r}.",
                    next_actions=["Ask the user to look at the settings of the repository."],
                )
            yield from ("-c", f"{name}.process=", "-c", f"{name}.required=false")

    async def _look(self, worktree: Worktree, processes: Processes) -> None:
        """Computes the diff; if that fails, keeps the worktree."""
        out, err = Capture(DIFF_BYTES), Capture(1_000)
        command = Command(
            argv=("/bin/sh", "-c", _DIFF),
            environment={
                "BASE": worktree.base,
                "GIT_DIR": str(worktree.git_dir),
                "GIT_WORK_TREE": str(worktree.path),
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(worktree.common / "objects"),
                "GIT_OPTIONAL_LOCKS": "0",
            },
        )
        try:
            running = await processes.start(command)
            done = await communicate(running, out.feed, err.feed, seconds=GIT_SECONDS)
        except ToolError as error:
            worktree.diff = f"(no diff: {error.message})"
            return
        if done.exit_code:
            worktree.diff = f"(no diff: {err.excerpt(1_000).text.strip()})"
            return
        worktree.diff = out.excerpt(DIFF_BYTES).text
        worktree.is_kept = bool(out.size)

    def remove(self, worktree: Worktree) -> None:
        """Removes a worktree and its contents; blocks."""
        remove_scratch(os.fsencode(worktree.path))
        self._run("worktree", "prune")

    def _run(self, *arguments: str) -> str:
        """Runs git in the root's repository without running programs from its settings."""
        done = subprocess.run(  # noqa: S603  # found outside the root
            [self._git, *_QUIET, *arguments],
            cwd=self._held.way_in(),
            env={
                "PATH": self._search_path,
                "HOME": str(Path.home()),
                "GIT_ALLOW_PROTOCOL": "",  # a partial clone would run programs to fetch objects
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=GIT_SECONDS,
        )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise UnavailableError(
                f"No git worktree can be made of the root: {said or 'git failed'}.",
                next_actions=[
                    (
                        "Ask the user to make the root a repository with a commit, or to set"
                        " worktree = false for this agent."
                    )
                ],
            )
        return os.fsdecode(done.stdout).removesuffix("\n")

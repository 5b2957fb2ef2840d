"""Git worktrees: a copy of the root's last commit for one agent, kept where it changed something.

What the agent leaves there may be anything, a repository with settings that run programs too. So
the server's own git looks at the root alone, and runs nothing that the settings there name. What
changed is found by a git that is confined as the agent was.
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
from tools.sandbox.processes.launching.program import communicate
from tools.sandbox.processes.models import Command
from tools.sandbox.processes.output import Capture
from tools.sandbox.processes.scratch import remove_scratch

if TYPE_CHECKING:
    from tools.sandbox.files.openat import HeldRoot
    from tools.sandbox.processes.processes import Processes

GIT_SECONDS = 120.0
DIFF_BYTES = 12_000
"""Of a diff that is told; the worktree itself has all of it."""

_QUIET = (
    *("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false"),
    *("-c", "submodule.recurse=false"),
)

_OF_REPOSITORY = frozenset({"local", "worktree"})
"""Where settings stand that are the repository's own, as git calls it."""

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
"""Prints every difference to the base, new files too, and writes nothing to the repository.

Devices and closed directories are what rules hide, and count as unchanged. `-xtype` looks at the
file itself: the entry of a hidden one still says that it is regular.
"""


@dataclass(slots=True)
class Worktree:
    """One agent's worktree.

    Attributes:
        path: Where it is.
        base: The commit that it began with.
        prefix: The root's place in it.
        common: The repository's own directory, which it shares.
        git_dir: The directory of the repository that is about it alone.
        diff: What the agent changed, shortened; empty while nobody has looked, or for nothing.
        is_kept: Whether it stays.
    """

    path: Path
    base: str
    prefix: str
    common: Path
    git_dir: Path
    diff: str = ""
    is_kept: bool = True


class Worktrees:
    """Makes worktrees of the root's repository.

    Args:
        root: The root.
        place: The private directory that they are made in.
        search_path: Where git is found.
        held: Keeps the root the directory that it was.
    """

    def __init__(self, root: Path, place: Path, search_path: str, held: HeldRoot) -> None:
        self._root = root
        self._held = held
        self._place = place
        self._git = find_program("git", search_path, str(root.resolve()))
        self._search_path = search_path

    @asynccontextmanager
    async def opened(
        self, name: str, processes: Callable[[Worktree], Processes]
    ) -> AsyncIterator[tuple[Worktree, Processes]]:
        """A worktree, with what starts programs in it; removed in the end where nothing changed.

        Args:
            name: What to call it.
            processes: Makes what starts programs there.
        """
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
        """The worktree of that name, of which nothing is read: its agent may have written it."""
        worktree = self._described(name)
        if not worktree.path.is_dir():
            raise UnavailableError(
                f"The worktree {worktree.path} is not there any more.",
                next_actions=["Do the work yourself."],
            )
        return worktree

    async def changes(self, name: str, processes: Callable[[Worktree], Processes]) -> Worktree:
        """Looks at a worktree that was left: its `diff` has what would be lost with it.

        Its commit is what git keeps of it in the repository, where agents cannot write.
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
                pass  # it has commits of its own: all that differs from the root's is told
            await self._look(worktree, runner)
        except OSError as error:
            worktree.diff = f"(could not be told: {error.strerror})"
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
        """Yields options with which git runs no filter that the repository's own settings name."""
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
        """Finds what changed; where that cannot be found, the worktree stays."""
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
            worktree.diff = f"(could not be told: {error.message})"
            return
        if done.exit_code:
            worktree.diff = f"(could not be told: {err.excerpt(1_000).text.strip()})"
            return
        worktree.diff = out.excerpt(DIFF_BYTES).text
        worktree.is_kept = bool(out.size)

    def remove(self, worktree: Worktree) -> None:
        """Removes a worktree with all that is in it; blocks."""
        remove_scratch(os.fsencode(worktree.path))
        self._run("worktree", "prune")

    def _run(self, *arguments: str) -> str:
        """What git says of the root's repository, whose settings have it run nothing."""
        done = subprocess.run(  # noqa: S603  # found outside the root
            [self._git, *_QUIET, *arguments],
            cwd=self._held.way_in(),
            env={
                "PATH": self._search_path,
                "HOME": str(Path.home()),
                "GIT_ALLOW_PROTOCOL": "",  # a partial clone has programs fetch what it lacks
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

"""Undoes programs' changes to write-protected paths when they have ended.

Mounts protect what exists when a program starts. Files it creates (a hook, an `.mcp.json`), and all
files if nothing can be mounted, are compared with an earlier snapshot: changed and removed files
are restored; new ones are moved to the data directory and reported. Everything is opened from the
root down without following links.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import anyio

from tools.core.errors import UnavailableError
from tools.sandbox.files.openat import HeldRoot
from tools.sandbox.files.protect import REMOVABLE, folded
from tools.sandbox.files.replace import replace_file
from tools.sandbox.processes.models import RepositoryWork
from tools.sandbox.processes.protection.quarantine import Quarantine
from tools.sandbox.processes.protection.repository_config import is_harmless
from tools.sandbox.processes.protection.scan import (
    MOST_BYTES,
    READABLE,
    Entry,
    Folder,
    Scan,
    accepted,
    open_folder,
    scan,
    take_snapshot,
)

MOST_NOTES = 20

_SETTINGS = frozenset({"config", "config.worktree"})

_HOOKS_OF_COMMITS = frozenset(
    {"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "pre-merge-commit"}
)
"""Hooks that only git commit and git merge run (githooks(5))."""

_SYSTEM_SETTINGS = Path("/etc/gitconfig")
"""Git's settings for the whole machine, which name programs and may name hooks anywhere."""

_NONE = RepositoryWork()


@dataclass(frozen=True, slots=True)
class WriteProtected:
    """The paths that a confinement should protect by mounts, if it can; absolute."""

    paths: tuple[str, ...] = ()
    # Directories that must not be moved, so that those paths stay the same.
    pinned: tuple[str, ...] = ()


class Protection:
    """Protects the write-protected paths of a root from programs that may write there.

    The snapshot is from a time without running programs: if a program starts while others run,
    their changes are undone first.
    """

    def __init__(self, root: str, quarantine: Path, held: HeldRoot) -> None:
        self._root = root
        self._held = held
        self._quarantine = quarantine
        self._lock = threading.Lock()
        self._running = 0
        self._folders: dict[str, Folder] = {}
        self._entries: dict[str, Entry] = {}
        self._failed: dict[str, tuple[Entry | None, Entry | None]] = {}
        """Changes that could not be undone: the earlier and the current entry."""
        self._left_out: dict[str, Entry] = {}
        """Files that only another branch has; they may come back unchanged."""
        self._switches = False  # whether only a git that switches branches is running
        self._notes: list[str] = []  # notes not yet reported

    def begin(self, work: RepositoryWork = _NONE, removed: Iterable[str] = ()) -> WriteProtected:
        """Takes a snapshot before a program starts; blocks while walking the root.

        A program with an effect on repositories (`work`) must run alone.
        """
        with self._lock:
            self._held.check()
            root = self._open_root()
            if not self._running:
                found = self._accept(root)
            if self._running or self._failed:
                found = self._restore(root)
            self._running += 1
            is_known = not (work.leads_on and self._runs_something(found))
            self._switches = work.switches and is_known
            return self._places(found, work if is_known else _NONE, removed if is_known else ())

    def end(self) -> tuple[str, ...]:
        """Undoes changes after a program has ended, or failed to start; blocks like `begin`.

        Returns the changes undone since the last program ended, and those that could not be.
        """
        with self._lock:
            try:
                self._restore(self._open_root())
            except OSError as error:
                return (f"The protected files could not be looked at: {error}",)
            finally:
                self._running -= 1
                self._switches = False
            notes, self._notes = self._notes, []
        if len(notes) > MOST_NOTES:
            notes[MOST_NOTES:] = [f"… and {len(notes) - MOST_NOTES} more"]
        return tuple(notes)

    @contextlib.contextmanager
    def accepting(self, path: str, content: bytes) -> Iterator[None]:
        """Accepts what the block writes when programs end; blocks like `begin`.

        The path is relative to the root. Later changes of the content by programs are undone.
        """
        with self._lock:
            if self._running and len(content) > MOST_BYTES:
                raise UnavailableError(
                    f"{path!r} is not written while programs run: {len(content)} bytes are too "
                    "many to be protected from them.",
                    next_actions=["End what runs in the background first, with bash_kill."],
                )
            yield
            if self._running:
                with contextlib.suppress(OSError):
                    self._entries |= accepted(self._open_root(), path, content, self._entries)
                self._failed.pop(path, None)

    def _open_root(self) -> int:
        """Returns the descriptor of the programs' root, even if it has been moved."""
        root = self._held.descriptor()
        mode = os.fstat(root).st_mode
        if self._running and mode & READABLE != READABLE:
            # fchmod() does not accept O_PATH descriptors.
            way = f"/proc/self/fd/{root}" if hasattr(os, "O_PATH") else root
            os.chmod(way, stat.S_IMODE(mode) | stat.S_IRWXU)  # noqa: PTH101  # on a descriptor
        return root

    def _places(self, found: Scan, work: RepositoryWork, removed: Iterable[str]) -> WriteProtected:
        top = f"{self._root}/" if self._root != "/" else "/"
        gone = tuple(f"{path}/" for path in removed)

        def is_held(folder: str) -> bool:
            return not f"{top}{folder}/".startswith(gone)

        def is_closed(folder: str, name: str) -> bool:
            entry = self._entries.get(f"{folder}/{name}" if folder else name)
            if entry is None or stat.S_ISLNK(entry.mode) or not is_held(folder):
                return False
            if found.folders[folder].is_git:
                return not (work.configures and name in _SETTINGS)
            return not (work.switches and folded(name) in REMOVABLE)

        return WriteProtected(
            tuple(
                str(Path(self._root, folder, name))
                for folder, name in found.protected()
                if is_closed(folder, name)
            ),
            tuple(str(Path(self._root, each)) for each in found.repositories() if is_held(each)),
        )

    def _runs_something(self, found: Scan) -> bool:
        """Returns whether git may run something named by a hook or setting in the root."""
        for path, entry in self._entries.items():
            folder = found.folders.get(entry.folder)
            if folder is None or not folder.is_git:
                continue
            is_file = stat.S_ISREG(entry.mode) and path.rpartition("/")[2] in _SETTINGS
            if is_file and entry.content is not None and is_harmless(entry.content, None):
                continue
            if not entry.is_folder and path.rpartition("/")[2] not in _HOOKS_OF_COMMITS:
                return True
        try:
            return b"hookspath" in _SYSTEM_SETTINGS.read_bytes().lower()
        except OSError:  # missing, or unreadable to programs too
            return False

    def _accept(self, root: int) -> Scan:
        """Accepts the current state, except for changes that could not be undone."""
        found = scan(root, self._folders)
        self._folders = found.folders
        there = take_snapshot(root, found, self._entries)
        self._left_out = {path: each for path, each in self._left_out.items() if path not in there}
        self._entries = self._left_out | there
        for path, (before, instead) in tuple(self._failed.items()):
            if _is_same(self._entries.get(path), instead):
                self._set(path, before)
            else:
                del self._failed[path]
        return found

    def _set(self, path: str, entry: Entry | None) -> None:
        if entry is None:
            self._entries.pop(path, None)
        else:
            self._entries[path] = entry

    def _restore(self, root: int) -> Scan:
        found = scan(root, self._folders, is_after=True)
        now = take_snapshot(root, found, self._entries, is_after=True)
        undoing = _Undoing(root, found, self._quarantine)
        for path in sorted(self._entries.keys() | now.keys(), key=lambda path: path.split("/")):
            before = self._entries.get(path)
            if before is not None and path not in now and self._may_leave_out(path, before, found):
                self._left_out[path] = before
                continue
            if path in self._left_out and not _is_same(before, now.get(path)):
                before = None
            undoing.check(path, before, now.get(path))
        for path in dict.fromkeys(self._outermost_new(path) for path in found.unread):
            undoing.set_aside(path)
        if undoing.notes:
            found = scan(root, found.folders)
        # Paths removed with their parents are protected again should they come back.
        gone = {path: entry for path, entry in self._entries.items() if path not in now}
        self._folders = found.folders
        left = take_snapshot(root, found, now) if undoing.notes else now
        self._entries = gone | left
        self._failed = {path: (before, left.get(path)) for path, before in undoing.failed.items()}
        for path, before in undoing.failed.items():
            self._set(path, before)
        self._notes += undoing.notes
        return found

    def _may_leave_out(self, path: str, before: Entry, found: Scan) -> bool:
        """Returns whether a path may be missing because the current branch does not have it."""
        if path in self._left_out:
            return True
        name = path[len(before.folder) :].lstrip("/").partition("/")[0]
        folder = found.folders.get(before.folder)
        is_git = folder is not None and folder.is_git
        return self._switches and not is_git and folded(name) in REMOVABLE

    def _outermost_new(self, path: str) -> str:
        """Returns the topmost new directory on the way to a path."""
        parts = path.split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts)))
        return next((each for each in above if each not in self._folders), path)


class Occupancy:
    """Counts the programs inside; one that is alone keeps others waiting."""

    def __init__(self) -> None:
        self._inside = 0
        self._alone: anyio.Event | None = None

    async def enter(self, *, alone: bool) -> bool:
        """Enters as soon as no program inside is alone; returns whether it is alone.

        `alone`: whether to be alone if no program is inside.
        """
        while self._alone is not None:
            await self._alone.wait()
        if alone and not self._inside:
            self._alone = anyio.Event()
        self._inside += 1
        return self._alone is not None

    def leave(self) -> None:
        """Leaves, and lets waiting programs in."""
        self._inside -= 1
        if self._alone is not None:
            self._alone.set()
            self._alone = None


class _Undoing:
    """One comparison with the snapshot, which undoes differences."""

    def __init__(self, root: int, found: Scan, quarantine: Path) -> None:
        self.notes: list[str] = []
        # Earlier entries that could not be restored, by path.
        self.failed: dict[str, Entry | None] = {}
        self._root = root
        self._found = found
        self._directory = quarantine
        self._moved = ""  # the last path moved; the paths below it follow

    def check(self, path: str, before: Entry | None, now: Entry | None) -> None:
        """Checks a protected path; directories come before their contents."""
        if self._moved and path.startswith(f"{self._moved}/"):
            now = None
        if _is_same(before, now):
            return
        if now is not None and self._is_accepted(path, before, now):
            return
        if now is None and before is not None and before.folder not in self._found.folders:
            return  # no file is left for programs to obey
        try:
            self._undo(path, before, now)
        except (OSError, RecursionError) as error:
            self.failed[path] = before
            self.notes.append(f"could not be put back: {path} ({error})")

    def set_aside(self, path: str) -> None:
        """Moves away a directory that was not fully examined."""
        above, _, name = path.rpartition("/")
        try:
            with open_folder(self._root, above, rights=stat.S_IRWXU) as directory:
                place = self._quarantine.take(directory, name, path)
        except OSError as error:
            self.notes.append(f"could not be set aside: {path} ({error})")
            return
        self.notes.append(
            f"set aside, as it is too large or too deep to be searched for protected files: {path}"
            f" (moved to {place})"
        )

    def _is_accepted(self, path: str, before: Entry | None, now: Entry) -> bool:
        """Returns whether git itself creates such a file, and runs nothing because of it."""
        folder = self._found.folders.get(now.folder)
        if folder is None or not folder.is_git:
            return False
        inner = path[len(now.folder) :].lstrip("/")
        if inner == "hooks":
            return now.is_folder
        if inner not in _SETTINGS or not stat.S_ISREG(now.mode) or now.content is None:
            return False
        return is_harmless(now.content, before.content if before is not None else None)

    @cached_property
    def _quarantine(self) -> Quarantine:
        return Quarantine(self._directory)

    def _undo(self, path: str, before: Entry | None, now: Entry | None) -> None:
        above, _, name = path.rpartition("/")
        with open_folder(self._root, above, rights=stat.S_IRWXU) as directory:
            moved = ""
            if now is not None and not (before is not None and before.is_folder and now.is_folder):
                moved = f" (moved to {self._quarantine.take(directory, name, path)})"
                self._moved = path
            if before is None:
                self.notes.append(f"taken away: {path}{moved}")
                return
            if before.is_folder:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=directory)
                _set_mode(directory, name, before.mode)
            elif stat.S_ISLNK(before.mode) and before.content is not None:
                os.symlink(os.fsdecode(before.content), name, dir_fd=directory)
            elif before.content is not None and stat.S_ISREG(before.mode):
                replace_file(directory, name, before.content, None)
                _set_mode(directory, name, before.mode)
            else:
                self.notes.append(f"could not be put back: {path} (too large to be remembered)")
                return
            self.notes.append(f"put back: {path}{moved}")


def _is_same(one: Entry | None, other: Entry | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.same_as(other)


def _set_mode(directory: int, name: str, mode: int) -> None:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    fd = os.open(name, flags, dir_fd=directory)
    try:
        os.fchmod(fd, stat.S_IMODE(mode))
    finally:
        os.close(fd)

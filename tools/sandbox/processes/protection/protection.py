"""What programs did to closed places is undone when they have ended.

A mount closes what exists when a program starts. What it makes anew (a hook, an `.mcp.json`), and
all of it where nothing can be mounted, is compared with what was there before: changed and removed
files are put back, new ones are moved into the data directory and told. Everything is opened from
the root down without following a link.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools.sandbox.files.openat import OPEN_DIRECTORY
from tools.sandbox.files.replace import replace_file
from tools.sandbox.processes.protection.closed import Folder, Survey, opened, survey
from tools.sandbox.processes.protection.quarantine import Quarantine
from tools.sandbox.processes.protection.remembered import Entry, remember
from tools.sandbox.processes.protection.repository_config import is_harmless

__all__ = ["ClosedPlaces", "Protection"]

MOST_NOTES = 20

_READABLE = stat.S_IRUSR | stat.S_IXUSR

_SETTINGS = frozenset({"config", "config.worktree"})


@dataclass(frozen=True, slots=True)
class ClosedPlaces:
    """What a level closes by mounts, as far as it can; absolute paths.

    Attributes:
        closed: Files and directories that exist.
        own: The directories that must not be moved, so that those stay where they are.
    """

    closed: tuple[str, ...] = ()
    own: tuple[str, ...] = ()


class Protection:
    """Remembers the closed places of a root while programs run that may write there.

    What is remembered is what was there when none ran: a program that is started while another
    one runs finds that one's changes undone first.

    Args:
        root: The root.
        quarantine: The directory for what is moved out of it.
    """

    def __init__(self, root: str, quarantine: Path) -> None:
        self._root = root
        self._quarantine = quarantine
        self._lock = threading.Lock()
        self._running = 0
        self._folders: dict[str, Folder] = {}
        self._entries: dict[str, Entry] = {}
        self._failed: dict[str, tuple[Entry | None, Entry | None]] = {}
        """What could not be undone: what was there before, and what is there instead."""
        self._notes: list[str] = []
        """What is still to be told."""

    def begin(self) -> ClosedPlaces:
        """Called before a program is started; blocks while the root is looked through.

        Raises:
            OSError: If the root cannot be opened.
        """
        with self._lock, self._opened() as root:
            if not self._running:
                found = self._take_in(root)
            if self._running or self._failed:
                found = self._put_back(root)
            self._running += 1
            return self._places(found)

    def end(self) -> tuple[str, ...]:
        """Called when a program has ended, or was not started after all; blocks like `begin`.

        Returns:
            What was undone since the last program ended, and what could not be.
        """
        with self._lock:
            try:
                with self._opened() as root:
                    self._put_back(root)
            except OSError as error:
                return (f"The protected files could not be looked at: {error}",)
            finally:
                self._running -= 1
            notes, self._notes = self._notes, []
        if len(notes) > MOST_NOTES:
            notes[MOST_NOTES:] = [f"… and {len(notes) - MOST_NOTES} more"]
        return tuple(notes)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        mode = os.stat(self._root).st_mode  # noqa: PTH116  # a text, not a path
        if self._running and mode & _READABLE != _READABLE:
            os.chmod(self._root, stat.S_IMODE(mode) | stat.S_IRWXU)  # noqa: PTH101  # the same
        root = os.open(self._root, OPEN_DIRECTORY)
        try:
            yield root
        finally:
            os.close(root)

    def _places(self, found: Survey) -> ClosedPlaces:
        def absolute(path: str) -> str:
            return os.path.join(self._root, path)  # noqa: PTH118  # texts, not paths

        links = {path for path, entry in self._entries.items() if stat.S_ISLNK(entry.mode)}
        closed = (f"{path}/{name}" if path else name for path, name in found.closed())
        return ClosedPlaces(
            tuple(absolute(path) for path in closed if path in self._entries and path not in links),
            tuple(absolute(path) for path in found.repositories()),
        )

    def _take_in(self, root: int) -> Survey:
        """Takes what is there for right, but for what could not be undone and is still there."""
        found = survey(root, self._folders)
        self._folders = found.folders
        self._entries = remember(root, found, self._entries)
        for path, (before, instead) in tuple(self._failed.items()):
            if _is_same(self._entries.get(path), instead):
                self._put(path, before)
            else:
                del self._failed[path]
        return found

    def _put(self, path: str, entry: Entry | None) -> None:
        """Has an entry, or none, remembered for a path."""
        if entry is None:
            self._entries.pop(path, None)
        else:
            self._entries[path] = entry

    def _put_back(self, root: int) -> Survey:
        found = survey(root, self._folders, rights=_READABLE)
        now = remember(root, found, self._entries, rights=_READABLE)
        undoing = _Undoing(root, found, Quarantine(self._quarantine))
        for path in sorted(self._entries.keys() | now.keys(), key=lambda path: path.split("/")):
            undoing.judge(path, self._entries.get(path), now.get(path))
        if not found.is_complete:
            undoing.notes.append("There are too many new directories to look for protected files.")
        if undoing.notes:
            found = survey(root, found.folders)
        # What was removed together with all around it is protected again should it come back.
        gone = {path: entry for path, entry in self._entries.items() if path not in now}
        self._folders = found.folders
        left = remember(root, found, now) if undoing.notes else now
        self._entries = gone | left
        self._failed = {path: (before, left.get(path)) for path, before in undoing.failed.items()}
        for path, before in undoing.failed.items():
            self._put(path, before)
        self._notes += undoing.notes
        return found


class _Undoing:
    """One comparison, and what follows from it.

    Attributes:
        notes: What was done, a sentence each.
        failed: What could not be undone: what was there before, by its path.
    """

    def __init__(self, root: int, found: Survey, quarantine: Quarantine) -> None:
        self.notes: list[str] = []
        self.failed: dict[str, Entry | None] = {}
        self._root = root
        self._found = found
        self._quarantine = quarantine
        self._moved: list[str] = []

    def judge(self, path: str, before: Entry | None, now: Entry | None) -> None:
        """Looks at one closed place; those above it were looked at before."""
        if any(path.startswith(f"{moved}/") for moved in self._moved):
            now = None
        if _is_same(before, now):
            return
        if now is not None and self._is_accepted(path, before, now):
            return
        if now is None and before is not None and not self._is_missed(before):
            return
        try:
            self._undo(path, before, now)
        except (OSError, RecursionError) as error:
            self.failed[path] = before
            self.notes.append(f"could not be put back: {path} ({error})")

    def _is_accepted(self, path: str, before: Entry | None, now: Entry) -> bool:
        """Whether git itself makes such a thing, and runs nothing because of it."""
        folder = self._found.folders.get(now.folder)
        if folder is None or not folder.is_git:
            return False
        inner = path[len(now.folder) :].lstrip("/")
        if inner == "hooks":
            return now.is_folder
        if inner not in _SETTINGS or not stat.S_ISREG(now.mode) or now.content is None:
            return False
        return is_harmless(now.content, before.content if before is not None else None)

    def _is_missed(self, before: Entry) -> bool:
        """Whether what it belongs to is still there; else nothing is left that would obey it."""
        folder = self._found.folders.get(before.folder)
        return folder is not None

    def _undo(self, path: str, before: Entry | None, now: Entry | None) -> None:
        above, _, name = path.rpartition("/")
        with opened(self._root, above, rights=stat.S_IRWXU) as directory:
            moved = ""
            if now is not None and not (before is not None and before.is_folder and now.is_folder):
                moved = f" (moved to {self._quarantine.take(directory, name, path)})"
                self._moved.append(path)
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

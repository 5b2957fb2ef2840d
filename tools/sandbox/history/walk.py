"""A look at all files of a root: what is where, and the content of what changed since the last one.

A file that has not changed costs one look at its status. Nothing is opened through a link, no pipe
is waited for, and all is bounded: what is passed over is in the result, with why.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import islice

from storage.keeping.changes.contents import pack
from storage.keeping.changes.models import FileState, Observed
from tools.sandbox.files.kept import look, state_of
from tools.sandbox.files.nofollow import Descent
from tools.sandbox.files.openat import identity
from tools.sandbox.search.gitignore import IgnoreRules
from tools.sandbox.search.tree import VERSION_CONTROL

MOST_FILE_BYTES = 1_000_000
"""Bytes of the largest file that is kept before a program."""

MOST_ENTRIES = 10_000
"""Files and directories of a root that are looked at: some 60 ms."""

MOST_IN_FOLDER = 2_000
"""Entries of one directory from which on it is passed over as a store of data."""

IGNORED = "ignored by git"
MADE_AGAIN = "made by tools"
TOO_MANY = "too many files"
CLOSED = "not readable"

UNSEEN = frozenset({IGNORED, MADE_AGAIN, TOO_MANY, CLOSED})
"""Why a path was not looked at, so that nobody knows whether it changed."""

DEEPEST = 64
"""Levels of directories that are looked into, each of which is held open."""

_MADE_AGAIN = frozenset({"node_modules", "__pycache__", *VERSION_CONTROL})

_MADE_AGAIN_MARKS = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})
"""What tools put into the directories of virtual environments and caches."""

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})

_SETTLED_NS = 2_500_000_000
"""How long a file must have been unchanged for its times to prove it, in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one look may take.

    Attributes:
        entries: Files and directories that are looked at.
        content_bytes: Bytes of all contents together.
    """

    entries: int = MOST_ENTRIES
    content_bytes: int = 64_000_000


def walk(
    root: int,
    known: Mapping[str, FileState],
    *,
    closed: Collection[tuple[int, int]] = (),
    is_after: bool = False,
    limits: Limits = Limits(),  # it cannot be changed
) -> Observed:
    """Looks at a root.

    Args:
        root: Descriptor of the root.
        known: What was where at the last look.
        closed: Device and inode of what is passed over.
        is_after: Whether a program ran since that look: then each file that was known is looked
            at, also where it is ignored by now.
        limits: What it may take.

    Raises:
        OSError: If the root itself cannot be read.
    """
    looking = _Look(known, frozenset(closed), limits)
    with Descent(root) as descent:
        looking.run(descent)
        if is_after:
            looking.look_at_missing(descent)
    return looking.observed


@dataclass(slots=True)
class _Look:
    """One look at a root, level by level, so that no deep tree crowds out the others."""

    known: Mapping[str, FileState]
    closed: frozenset[tuple[int, int]]
    limits: Limits
    observed: Observed = field(default_factory=Observed)
    _left: int = 0
    _room: int = 0
    _now: int = 0

    def run(self, descent: Descent) -> None:
        """Looks at all that is not passed over."""
        self._left, self._room = self.limits.entries, self.limits.content_bytes
        self._now = time.time_ns()
        waiting = deque([("", IgnoreRules())])
        while waiting:
            path, above = waiting.popleft()
            if self._left <= 0 or path.count("/") >= DEEPEST:
                self._pass_over(path, TOO_MANY)
                continue
            try:
                fd = descent.open(path)
                with os.scandir(fd) as scan:
                    first = list(islice(scan, MOST_IN_FOLDER + 1))
            except OSError:
                if not path:
                    raise
                self._pass_over(path, CLOSED)
                continue
            entries = sorted(first, key=lambda entry: entry.name)
            prefix = f"{path}/" if path else ""
            names = {entry.name for entry in entries}
            if path and not names.isdisjoint(_MADE_AGAIN_MARKS):
                self._pass_over(path, MADE_AGAIN)
                continue
            if len(entries) > min(self._left, MOST_IN_FOLDER):
                self._pass_over(path, TOO_MANY)
                continue
            self._left -= len(entries)
            ignored = above.below(fd, prefix, names)
            for entry in entries:
                if self._enters(entry, f"{prefix}{entry.name}", fd, ignored):
                    waiting.append((f"{prefix}{entry.name}", ignored))

    def look_at_missing(self, descent: Descent) -> None:
        """Looks at the files that were known and not found: they are gone, or passed over now."""
        files = self.observed.files
        for path, before in self.known.items():
            now = files.get(path)
            if not before.is_file or (now is not None and now.why not in UNSEEN):
                continue
            above, _, name = path.rpartition("/")
            try:
                fd = descent.open(above)
                status = os.stat(name, dir_fd=fd, follow_symlinks=False)
                files[path] = self._state(fd, name, path, status)
            except OSError as error:
                if error.errno not in _GONE:
                    files[path] = before  # nobody can tell

    def _enters(
        self, entry: os.DirEntry[str], path: str, directory: int, ignored: IgnoreRules
    ) -> bool:
        """Looks at one name; whether it is a directory to look into."""
        is_folder = entry.is_dir(follow_symlinks=False)
        if entry.name in _MADE_AGAIN:
            self._pass_over(path, MADE_AGAIN)
            return False
        if ignored.match(path, is_directory=is_folder):
            self._pass_over(path, IGNORED)
            return False
        try:
            status = entry.stat(follow_symlinks=False)
            if identity(status) in self.closed:
                self._pass_over(path, CLOSED)
            elif is_folder:
                return True
            else:
                self.observed.files[path] = self._state(directory, entry.name, path, status)
        except OSError:  # removed meanwhile
            pass
        return False

    def _pass_over(self, path: str, why: str) -> None:
        self.observed.files[path] = FileState("unseen", 0, why)

    def _state(self, directory: int, name: str, path: str, status: os.stat_result) -> FileState:
        if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_FILE_BYTES:
            return state_of(directory, name, status)
        known = self.known.get(path)
        signature = _signature(status)
        if known is not None and known.signature == signature and known.is_file:
            self._room -= status.st_size
            return known
        has_room = self._room >= status.st_size
        if not has_room and known is None:
            return FileState("unseen", 0, TOO_MANY)
        found = look(directory, name, most_bytes=MOST_FILE_BYTES)
        if found.content is None or not has_room:  # what it was is kept already
            return found.state
        self._room -= len(found.content)
        self.observed.contents[found.state.state] = pack(found.content)
        # Of a file that was written just now, a later change may have the same times.
        is_settled = self._now - status.st_ctime_ns > _SETTLED_NS
        return found.state._replace(signature=signature if is_settled else "")


def _signature(status: os.stat_result) -> str:
    return (
        f"{status.st_ino}:{status.st_mode}:{status.st_size}:"
        f"{status.st_mtime_ns}:{status.st_ctime_ns}"
    )

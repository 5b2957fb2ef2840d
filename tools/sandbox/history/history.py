"""The history of a root: scans its files, and records changes so that they can be undone.

In a scan, an unchanged file costs one stat. Nothing is opened through a link, no pipe blocks, and
everything is bounded: the result lists what was skipped, and why.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

from storage.errors import StorageError
from storage.keeping.changes.changes import Changes
from storage.keeping.changes.models import (
    ABSENT,
    Caller,
    Difference,
    FileState,
    Observed,
    OwnChanges,
    RootState,
    pack,
)
from tools.sandbox.files.openat import Descent, HeldRoot, identity
from tools.sandbox.files.resolve import Found, look, state_of
from tools.sandbox.search.gitignore import IgnoreRules
from tools.sandbox.search.tree import VERSION_CONTROL

ATTEMPTS = 5  # limit on scans of a root when other processes keep saving theirs first
IN_BACKGROUND = ", in the background"
MOST_FILE_BYTES = 1_000_000  # limit on the files saved before a program runs
MOST_ENTRIES = 10_000  # limit on the files and directories scanned, which takes about 60 ms
MOST_IN_FOLDER = 2_000  # number of entries from which a directory is skipped as a data store
IGNORED = "ignored by git"
MADE_AGAIN = "made by tools"
TOO_MANY = "too many files"
CLOSED = "not readable"

UNSEEN = frozenset({IGNORED, MADE_AGAIN, TOO_MANY, CLOSED})
"""Reasons for skipping a path, so that changes to it are unknown."""

DEEPEST = 64  # limit on the depth of directories, each of which is held open
_MADE_AGAIN = frozenset({"node_modules", "__pycache__", *VERSION_CONTROL})

_MADE_AGAIN_MARKS = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})
"""Files that mark virtual environments and caches."""

_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})

_SETTLED_NS = 2_500_000_000
"""Minimum age of a file, in nanoseconds, before its timestamps prove that it is unchanged."""

_logger = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one scan."""

    entries: int = MOST_ENTRIES
    content_bytes: int = 64_000_000


def walk(
    root: int,
    known: Mapping[str, FileState],
    *,
    closed: Collection[tuple[int, int]] = (),
    is_after: bool = False,
    limits: Limits = Limits(),  # immutable
) -> Observed:
    """Scans a root.

    `closed` are places to skip. `is_after` says that a program has run since the last scan; then
    all known files are examined, even those ignored now.
    """
    looking = _Look(known, frozenset(closed), limits)
    with Descent(root) as descent:
        looking.run(descent)
        if is_after:
            looking.look_at_missing(descent)
    return looking.observed


@dataclass(slots=True)
class _Look:
    """One breadth-first scan, so that a deep tree does not crowd out the rest."""

    known: Mapping[str, FileState]
    closed: frozenset[tuple[int, int]]
    limits: Limits
    observed: Observed = field(default_factory=Observed)
    _left: int = 0
    _room: int = 0
    _now: int = 0

    def run(self, descent: Descent) -> None:
        """Scans everything that is not skipped."""
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
        """Examines known files that were not found: they are gone, or skipped now."""
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
                    files[path] = before  # unknown, so assumed unchanged

    def _enters(
        self, entry: os.DirEntry[str], path: str, directory: int, ignored: IgnoreRules
    ) -> bool:
        """Examines a name; returns whether it is a directory to scan."""
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
        if found.content is None or not has_room:  # its old content is already saved
            return found.state
        self._room -= len(found.content)
        self.observed.contents[found.state.state] = pack(found.content)
        # A file written just now may change again with the same timestamps.
        is_settled = self._now - status.st_ctime_ns > _SETTLED_NS
        return found.state._replace(signature=signature if is_settled else "")


def _signature(status: os.stat_result) -> str:
    return (
        f"{status.st_ino}:{status.st_mode}:{status.st_size}:"
        f"{status.st_mtime_ns}:{status.st_ctime_ns}"
    )


def differences(
    before: Mapping[str, FileState], after: Mapping[str, FileState]
) -> list[Difference]:
    """Returns the known changes, sorted by path.

    A path counts as new only if it would have been seen before: a file in a directory that was
    skipped may have existed all along, and undoing its creation would delete it.
    """
    found = []
    touched = [path for path, now in after.items() if before.get(path) is not now]
    for path in sorted((*touched, *(before.keys() - after.keys()))):
        was, now = before.get(path, ABSENT), after.get(path, ABSENT)
        if was.why in UNSEEN or now.why in UNSEEN:
            continue
        if not was.same_as(now) and not (was is ABSENT and _is_hidden(path, before)):
            found.append(Difference(path, was, now))
    return found


def _is_hidden(path: str, files: Mapping[str, FileState]) -> bool:
    """Returns whether a parent directory of a path, or the root itself, was skipped."""
    while path:
        path = path.rpartition("/")[0]
        found = files.get(path)
        if found is not None and found.why in UNSEEN:
            return True
    return False


class History:
    """The changes recorded for one root.

    `closed` returns device and inode of places that scans skip.
    """

    def __init__(
        self,
        root: str,
        changes: Callable[[], Changes],
        closed: Callable[[], frozenset[tuple[int, int]]],
        held: HeldRoot,
        *,
        most_bytes: int,
    ) -> None:
        self.root = os.path.realpath(root)
        self._held = held
        self.most_bytes = most_bytes
        self._open = changes
        self._closed = closed
        self._lock = threading.Lock()
        self._state: RootState | None = None

    @cached_property
    def changes(self) -> Changes:
        """The store of changes."""
        return self._open()

    def of(self, caller: Caller) -> CallHistory:
        """Returns the history of one call."""
        return CallHistory(self, caller)

    def begin(self, caller: Caller) -> None:
        """Scans the root before a program starts; blocks.

        Changes since the last scan belong to the program still running, or running when its server
        was killed. Without such a program someone else made them, and they are not recorded.
        """
        self._look(begins=caller)

    def end(self, caller: Caller) -> None:
        """Scans the root after a program has ended, and records its changes; like `begin`."""
        self._look(ends=caller)

    def _look(self, *, begins: Caller | None = None, ends: Caller | None = None) -> None:
        limits = Limits(content_bytes=min(Limits().content_bytes, self.changes.keep_bytes // 2))
        with self._lock:
            for _ in range(ATTEMPTS):
                known = self.changes.root_state(self.root, self._state)
                by = ends or self.changes.running(self.root)
                observed = walk(
                    self._held.descriptor() if ends else self._held.check(),
                    known.files,
                    closed=self._closed(),
                    is_after=by is not None,
                    limits=limits,
                )
                is_first = not known.generation
                self._state = self.changes.advance(
                    self.root,
                    known,
                    observed,
                    differences=[] if is_first else differences(known.files, observed.files),
                    by=by,
                    begins=begins,
                    ends=ends,
                )
                if self._state is not None:
                    return
        raise StorageError("Other processes change the same files all the time.")


@dataclass(frozen=True)
class CallHistory:
    """Records the changes of one call, and reads those of its session; its methods block."""

    history: History
    caller: Caller

    @property
    def most_bytes(self) -> int:
        """Limit on the files whose content is saved."""
        return self.history.most_bytes

    @property
    def root(self) -> str:
        """The root, with links resolved."""
        return self.history.root

    @property
    def own(self) -> OwnChanges:
        """The changes of the call's identity."""
        return self.history.changes.own(self.caller.identity)

    @contextmanager
    def keeping(self, path: str, before: Found, after: FileState) -> Iterator[None]:
        """Records a change on disk, and discards the record if the block raises."""
        difference = Difference(path, before.state, after)
        content = {} if before.content is None else {before.state.state: pack(before.content)}
        root, changes = self.history.root, self.history.changes
        number = changes.keep(root, self.caller, difference, content)
        try:
            yield
        except BaseException:
            changes.withdraw(root, number, difference)
            raise

    def program(self, *, in_background: bool = False) -> ProgramChanges:
        """Returns a recorder for the changes of a program that the call starts."""
        caller = self.caller
        if in_background:
            caller = replace(caller, tool=caller.tool + IN_BACKGROUND)
        return ProgramChanges(self.history, caller)


class ProgramChanges:
    """Records the changes of one program; a failure does not stop the program, but is reported."""

    def __init__(self, history: History, caller: Caller) -> None:
        self._history = history
        self._caller = caller
        self._problem = ""

    def begin(self) -> None:
        """Records the files' state before the program; blocks."""
        self._try(self._history.begin)

    def end(self) -> tuple[str, ...]:
        """Records the program's changes; returns a note if they cannot be undone. Blocks."""
        if not self._problem:
            self._try(self._history.end)
        return (self._problem,) if self._problem else ()

    def _try(self, look: Callable[[Caller], None]) -> None:
        try:
            look(self._caller)
        except (StorageError, OSError) as error:
            self._problem = f"What it changed cannot be undone: {error}"
            _logger.warning("What programs change is not kept: %s", error)

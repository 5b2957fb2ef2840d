"""The history of a root: records the changes of each call so that they can be undone."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

from storage.errors import StorageError
from storage.keeping.changes.changes import Changes
from storage.keeping.changes.models import (
    ABSENT,
    Caller,
    Difference,
    FileState,
    OwnChanges,
    RootState,
    pack,
)
from tools.sandbox.files.openat import HeldRoot
from tools.sandbox.files.undo_copy import Found
from tools.sandbox.history.walk import UNSEEN, Limits, walk


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


ATTEMPTS = 5  # limit on scans of a root when other processes keep saving theirs first
IN_BACKGROUND = ", in the background"

_logger = logging.getLogger("toolcrib")


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

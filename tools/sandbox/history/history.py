"""The history of a root: what each call changed in it, kept so that it can be taken back."""

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
from storage.keeping.changes.contents import pack
from storage.keeping.changes.models import ABSENT, Caller, Difference, FileState, RootState
from storage.keeping.changes.own import OwnChanges
from tools.sandbox.files.kept import Found
from tools.sandbox.files.openat import HeldRoot
from tools.sandbox.history.walk import UNSEEN, Limits, walk


def differences(
    before: Mapping[str, FileState], after: Mapping[str, FileState]
) -> list[Difference]:
    """What is known to have changed, in the order of the paths.

    A path is new only where it would have been seen: what lay in a directory that was passed over
    may have been there all the time, and whoever took it for new would remove it.

    Args:
        before: What was where.
        after: What is where.
    """
    return [each for each in _each(before, after) if not each.before.same_as(each.after)]


def _each(before: Mapping[str, FileState], after: Mapping[str, FileState]) -> Iterator[Difference]:
    touched = [path for path, now in after.items() if before.get(path) is not now]
    for path in sorted((*touched, *(before.keys() - after.keys()))):
        was, now = before.get(path, ABSENT), after.get(path, ABSENT)
        if was.why in UNSEEN or now.why in UNSEEN:
            continue
        if was is ABSENT and _is_hidden(path, before):
            continue
        yield Difference(path, was, now)


def _is_hidden(path: str, files: Mapping[str, FileState]) -> bool:
    """Whether a directory above a path, or the root itself, was passed over."""
    while path:
        path = path.rpartition("/")[0]
        found = files.get(path)
        if found is not None and found.why in UNSEEN:
            return True
    return False


ATTEMPTS = 5
"""Looks at a root of which other processes were faster to keep theirs."""

IN_BACKGROUND = ", in the background"

_logger = logging.getLogger("toolcrib")


class History:
    """What is kept of the changes in one root.

    Args:
        root: The root.
        changes: Opens where they are kept, when the first is made.
        held: Keeps the root the directory that it was.
        closed: Tells device and inode of what a look passes over.
        most_bytes: Bytes of the largest file that the file tools keep.
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
        """Where they are kept."""
        return self._open()

    def of(self, caller: Caller) -> CallHistory:
        """What one call keeps and sees."""
        return CallHistory(self, caller)

    def begin(self, caller: Caller) -> None:
        """Looks at the root before a program is started; blocks.

        What changed since the last look is the work of the program that still runs, or was running
        when its server was killed; if there is none, of somebody else, whose changes are not kept.

        Raises:
            OSError: If the root cannot be looked at.
        """
        self._look(begins=caller)

    def end(self, caller: Caller) -> None:
        """Looks at the root when a program has ended, and keeps what it changed; as `begin`."""
        self._look(ends=caller)

    def _look(self, *, begins: Caller | None = None, ends: Caller | None = None) -> None:
        limits = Limits(content_bytes=min(Limits().content_bytes, self.changes.keep_bytes // 2))
        with self._lock:
            for _ in range(ATTEMPTS):
                known = self.changes.root_state(self.root, self._state)
                by = ends or self.changes.running(self.root)
                observed = walk(
                    self._held.held() if ends else self._held.check(),
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
    """What one call keeps of its changes, and sees of its session's; its methods block.

    Attributes:
        history: Of its root.
        caller: The call.
    """

    history: History
    caller: Caller

    @property
    def most_bytes(self) -> int:
        """Bytes of the largest file whose content is kept."""
        return self.history.most_bytes

    @property
    def root(self) -> str:
        """The root, its own links followed."""
        return self.history.root

    @property
    def own(self) -> OwnChanges:
        """The changes of the call's identity."""
        return self.history.changes.own(self.caller.identity)

    @contextmanager
    def keeping(self, path: str, before: Found, after: FileState) -> Iterator[None]:
        """Keeps a change on the disk, and removes it again if the block raises."""
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
        """What keeps the changes of a program that the call starts."""
        caller = self.caller
        if in_background:
            caller = replace(caller, tool=caller.tool + IN_BACKGROUND)
        return ProgramChanges(self.history, caller)


class ProgramChanges:
    """Keeps what one program changes; a failure to do so ends no program, and is told.

    Args:
        history: Of the root.
        caller: The call that starts it.
    """

    def __init__(self, history: History, caller: Caller) -> None:
        self._history = history
        self._caller = caller
        self._problem = ""

    def begin(self) -> None:
        """Keeps what the files are before the program; blocks."""
        self._tried(self._history.begin)

    def end(self) -> tuple[str, ...]:
        """Keeps what it changed; blocks.

        Returns:
            A note, if it cannot be taken back.
        """
        if not self._problem:
            self._tried(self._history.end)
        return (self._problem,) if self._problem else ()

    def _tried(self, look: Callable[[Caller], None]) -> None:
        try:
            look(self._caller)
        except (StorageError, OSError) as error:
            self._problem = f"What it changed cannot be undone: {error}"
            _logger.warning("What programs change is not kept: %s", error)

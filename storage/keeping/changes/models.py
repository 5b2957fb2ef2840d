"""What is at a path, what changed there, and who did it, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from storage.models import Identity


class FileState(NamedTuple):
    """What is at a path.

    Attributes:
        state: The SHA-256 of a file's content, empty where nothing is, else a word that differs
            where what is there does: `link:…`, `large:…`, `directory`, `other`.
        mode: A file's mode, as stat(2) has it; 0 where that is not known or does not matter.
        why: Why its content is not kept; empty where it is, or where nothing is.
        signature: What changes when the file does; empty where only reading it can tell.
    """

    state: str
    mode: int
    why: str = ""
    signature: str = ""

    @property
    def is_file(self) -> bool:
        """Whether it is a file whose content is kept."""
        return bool(self.state) and not self.why

    def same_as(self, other: FileState) -> bool:
        """Whether what is there is the same, whatever else is known of it."""
        is_mode_same = not self.mode or not other.mode or self.mode == other.mode
        return self.state == other.state and is_mode_same


ABSENT = FileState("", 0)


class Difference(NamedTuple):
    """One path that is not as it was.

    Attributes:
        path: Relative to the root, without links; bytes that are no text as Python has them.
        before: What was there.
        after: What is there now.
    """

    path: str
    before: FileState
    after: FileState


@dataclass(frozen=True, slots=True)
class Caller:
    """One call that changes files.

    Attributes:
        call: Its number in the audit log.
        identity: Whose it is.
        session_id: The session it belongs to.
        tool: The tool.
    """

    call: str
    identity: Identity
    session_id: str
    tool: str


@dataclass(frozen=True, slots=True)
class Change:
    """A change as it is kept.

    Attributes:
        id: Its number; later ones have higher numbers.
        time: When it was made, Unix seconds.
        by: The call that made it.
        path: Relative to the root.
        before: What was there.
        after: What it put there.
    """

    id: int
    time: float
    by: Caller
    path: str
    before: FileState
    after: FileState


@dataclass(frozen=True, slots=True)
class RootState:
    """How a root was last seen.

    Attributes:
        generation: Differs whenever the files do.
        files: What was where; paths that are passed over are in it too, with why.
    """

    generation: int
    files: Mapping[str, FileState]


@dataclass(slots=True)
class Observed:
    """What a look at a root found, beside what was known.

    Attributes:
        files: What is where now.
        contents: Contents that were read, packed, by their SHA-256.
    """

    files: dict[str, FileState] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)

"""Data classes of file states, changes and callers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from storage.models import Identity


class FileState(NamedTuple):
    """The state of a path."""

    # the SHA-256 of a file's content, empty if nothing exists, else a word that identifies what
    # exists: `link:…`, `large:…`, `directory`, `other`
    state: str
    mode: int  # a file's mode, as in stat(2); 0 if unknown or irrelevant
    why: str = ""  # why its content is not stored; empty if it is, or if nothing exists
    # a value that changes with the file; empty if only reading the file can tell
    signature: str = ""

    @property
    def is_file(self) -> bool:
        """Whether it is a file whose content is stored."""
        return bool(self.state) and not self.why

    def same_as(self, other: FileState) -> bool:
        """Returns whether two states mean the same content and mode."""
        is_mode_same = not self.mode or not other.mode or self.mode == other.mode
        return self.state == other.state and is_mode_same


ABSENT = FileState("", 0)


class Difference(NamedTuple):
    """A path that changed."""

    path: str  # relative to the root, without links; undecodable bytes as Python decodes them
    before: FileState
    after: FileState


@dataclass(frozen=True, slots=True)
class Caller:
    """A call that changes files."""

    call: str
    identity: Identity
    session_id: str
    tool: str


@dataclass(frozen=True, slots=True)
class Change:
    """A stored change."""

    id: int  # its number; later ones have higher numbers
    time: float  # when it was made, Unix seconds
    by: Caller
    path: str
    before: FileState
    after: FileState


@dataclass(frozen=True, slots=True)
class RootState:
    """The last known state of a root."""

    generation: int
    # the state of each path; skipped paths are included, with the reason
    files: Mapping[str, FileState]


@dataclass(slots=True)
class Observed:
    """The result of scanning a root."""

    files: dict[str, FileState] = field(default_factory=dict)
    # the contents that were read, packed, by their SHA-256
    contents: dict[str, bytes] = field(default_factory=dict)
